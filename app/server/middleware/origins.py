"""Which web pages may use what browsers do not protect: MCP, and WebSockets."""

from app.server.middleware.hosts import LOOPBACK_NAMES, host_name
from app.server.process.config import ServerConfig
from app.server.wire.errors import ApiError
from app.settings.cors_origin import ANY_PAGE


def is_allowed_origin(config: ServerConfig, origin: str | None, host: str) -> bool:
    """Whether a page may send requests: one of this server, or one that may read its answers.

    Programs send no origin. On loopback, pages of this machine may too.

    Args:
        config: the server's settings.
        origin: the header `Origin`; None for none.
        host: the header `Host`.
    """
    allowed = config.cors_origins
    if origin is None or origin in allowed or ANY_PAGE.intersection(allowed):
        return True
    scheme, separator, authority = origin.partition("://")
    if not separator or scheme not in ("http", "https"):
        return False
    if authority == host:
        return True
    return config.on_loopback and host_name(authority) in LOOPBACK_NAMES


def refused_origin() -> ApiError:
    """The refusal of a page."""
    return ApiError(403, "Pages of this origin may not use this server; --cors-origin allows one.")
