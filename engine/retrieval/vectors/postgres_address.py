"""`PostgresAddress`: where a PostgreSQL database is, from a URL in an environment variable.

    postgresql://user:password@host:5432/database?sslmode=verify-full
    postgresql:///database?host=/run/postgresql&user=name

The variable is named in the collection; its value, which may have a password, is kept nowhere.
"""

import os
import ssl
from dataclasses import dataclass
from typing import Literal, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from engine.retrieval.vectors.errors import VectorIndexUnavailable

SslMode = Literal["disable", "require", "verify-full"]

_SSL_MODES = ("disable", "require", "verify-full")
_PARAMETERS = frozenset({"host", "port", "user", "sslmode"})
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where to connect.

    Attributes:
        host: name of a machine; a path is the folder of a socket.
        port: the server's.
        user: name of the role.
        password: None without one.
        database: its name.
        ssl_mode: whether the connection is encrypted, and the server's certificate verified.
    """

    host: str
    port: int
    user: str
    password: str | None
    database: str
    ssl_mode: SslMode

    def __repr__(self) -> str:
        """Without the password."""
        return f"PostgresAddress({self.user}@{self.host}:{self.port}/{self.database})"

    @property
    def ssl_context(self) -> ssl.SSLContext | None:
        """How TLS is done; None without it."""
        if self.ssl_mode == "disable":
            return None
        context = ssl.create_default_context()
        if self.ssl_mode == "require":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def postgres_address(variable: str) -> PostgresAddress:
    """The address in an environment variable.

    TLS with a verified certificate is the default for other machines; `sslmode` changes it.

    Raises:
        VectorIndexUnavailable: the variable is not set, or its value is no such URL. The message has nothing
            of the value.
    """
    text = os.environ.get(variable, "")
    if not text:
        raise VectorIndexUnavailable(
            f"The environment variable {variable} is not set: it must have the URL of the PostgreSQL "
            "database, postgresql://user:password@host/database."
        )
    try:
        url = urlsplit(text)
        given = dict(parse_qsl(url.query, strict_parsing=bool(url.query)))
        port = int(given.get("port", url.port or 5432))
    except ValueError as error:
        raise _malformed(variable) from error
    host = given.get("host", url.hostname or "localhost")
    user = given.get("user", unquote(url.username or ""))
    database = unquote(url.path.lstrip("/"))
    local = host in _LOCAL or host.startswith("/")
    ssl_mode = given.get("sslmode", "disable" if local else "verify-full")
    if url.scheme not in ("postgresql", "postgres") or not (user and database):
        raise _malformed(variable)
    if unknown := set(given) - _PARAMETERS:
        raise VectorIndexUnavailable(
            f"The URL in {variable} has the parameter {min(unknown)}; known are host, port, user and "
            "sslmode."
        )
    if ssl_mode not in _SSL_MODES:
        raise VectorIndexUnavailable(
            f"sslmode in {variable} must be one of {', '.join(_SSL_MODES)}."
        )
    password = None if url.password is None else unquote(url.password)
    return PostgresAddress(host, port, user, password, database, cast(SslMode, ssl_mode))


def _malformed(variable: str) -> VectorIndexUnavailable:
    return VectorIndexUnavailable(
        f"The value of {variable} is no URL of a PostgreSQL database: it must be like "
        "postgresql://user:password@host/database."
    )
