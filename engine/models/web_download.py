"""Download of a GGUF model from a web address that the user gives.

An interrupted download goes on where it broke off if the server says that the file is still the same (by
its ETag or its date), else it starts again.

The address is the user's own, so it may lead into a private network; what a server answers may not. A
redirect from a public server to a private address is refused, and from https to http. http itself is
only for private addresses, where there are seldom certificates.
"""

import errno
import hashlib
import ipaddress
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx

from engine.api.error_text import first_line
from engine.api.errors import FetchError, FetchInterrupted
from engine.models.progress import FetchProgress, ProgressCallback
from engine.models.web_address import WebAddress

ATTEMPTS = 6
"""Connections for one file in a row that may break off without a byte; each byte sets them back."""
_PAUSE_S = 1.0
_MAX_REDIRECTS = 10
_REPORT_BYTES = 1 << 20
_MAGIC = b"GGUF"
_TIMEOUT = httpx.Timeout(60.0, connect=30.0)


class _Broken(Exception):
    """The connection broke off, or the server is overloaded: worth another attempt."""


def fetch_from_web(
    address: WebAddress,
    staging: Path,
    progress: ProgressCallback,
    *,
    pause: Callable[[float], object] = time.sleep,
) -> Path:
    """Download a GGUF file, or all parts of a split one, into the directory `staging`; its (first) file.

    What an interrupted call left in `staging` is not downloaded again.

    Raises:
        FetchInterrupted: the server cannot be reached, or the download broke off; what arrived stays.
        FetchError: the server has no such file, or it is no GGUF file, or there is no room for it.
    """
    folder = staging / hashlib.sha256(str(address).encode()).hexdigest()[:16]
    try:
        _keep_only(folder)
        with httpx.Client(timeout=_TIMEOUT, headers={"accept-encoding": "identity"}) as client:
            for part in address.parts:
                if not (folder / part.name).is_file():
                    _Download(client, part, folder, progress).run(pause)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise FetchError(f"The disk is full: {address} does not fit.") from error
    return folder / address.parts[0].name


def _keep_only(folder: Path) -> None:
    """Delete what downloads from other places have left beside the folder, and create it."""
    for other in folder.parent.iterdir():
        if other != folder:
            shutil.rmtree(other) if other.is_dir() else other.unlink()
    folder.mkdir(exist_ok=True)


class _Download:
    """The download of one file.

    `partial` is what has arrived of it; `validator` the server's name for this version of the file.
    """

    def __init__(
        self, client: httpx.Client, address: WebAddress, folder: Path, progress: ProgressCallback
    ) -> None:
        self._client = client
        self._address = address
        self._path = folder / address.name
        self._partial = folder / f"{address.name}.part"
        self._validator = folder / f"{address.name}.version"
        self._progress = progress

    def run(self, pause: Callable[[float], object]) -> None:
        failures = 0
        while True:
            before = self._arrived()
            try:
                self._receive()
                break
            except (_Broken, httpx.TransportError) as error:
                failures = 0 if self._arrived() > before else failures + 1
                if failures == ATTEMPTS:
                    raise FetchInterrupted(self._sentence(error)) from error
                pause(_PAUSE_S * failures)
        self._partial.rename(self._path)
        self._validator.unlink(missing_ok=True)

    def _arrived(self) -> int:
        return self._partial.stat().st_size if self._partial.is_file() else 0

    def _sentence(self, error: Exception) -> str:
        arrived = self._arrived()
        more = f"; {arrived} bytes arrived, and the same command goes on" if arrived else ""
        return f"{self._address} could not be fetched: {first_line(error)}{more}."

    def _receive(self) -> None:
        """Receive the file, or the rest of it, over one connection."""
        start, headers = self._arrived(), {}
        if start and self._validator.is_file():
            headers = {"range": f"bytes={start}-", "if-range": self._validator.read_text()}
        with self._response(headers) as response:
            if response.status_code == 416:  # it has become shorter, or was complete
                self._partial.unlink()
                raise _Broken("the file on the server has changed")
            if response.status_code == 206 and not _continues(response, start):
                raise _Broken("the server sent another part of the file")
            if response.status_code == 200:
                start = 0
            self._check_room(response)
            self._keep_version(response)
            self._write(response, start)

    @contextmanager
    def _response(self, headers: dict[str, str]) -> Iterator[httpx.Response]:
        """The answer to a GET, redirects followed.

        Raises:
            FetchError: a refusal, or a redirect that leads where it must not.
            _Broken: the server is overloaded.
        """
        url, private = self._address.url, _is_private(self._address.url)
        _check_scheme(url, private=private)
        for _ in range(_MAX_REDIRECTS):
            with self._client.stream("GET", url, headers=headers) as response:
                if response.is_redirect:
                    target = urljoin(url, response.headers["location"])
                    _check_redirect(url, target, from_private=private)
                    url = target
                    continue
                if response.status_code == 429 or response.status_code >= 500:
                    raise _Broken(f"the server answers with status {response.status_code}")
                if response.status_code not in (200, 206, 416):
                    raise FetchError(
                        f"{self._address} could not be fetched: the server answers with status "
                        f"{response.status_code} ({response.reason_phrase or 'refused'})."
                    )
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise FetchError(
                        f"{self._address} could not be fetched: it arrives compressed."
                    )
                yield response
                return
        raise FetchError(f"{self._address} could not be fetched: too many redirects.")

    def _check_room(self, response: httpx.Response) -> None:
        length = response.headers.get("content-length", "")
        free = shutil.disk_usage(self._path.parent).free
        if length.isdecimal() and int(length) > free:
            raise FetchError(
                f"{self._address} does not fit on the disk: it has {int(length):,} bytes more, and "
                f"{free:,} are free."
            )

    def _keep_version(self, response: httpx.Response) -> None:
        etag = response.headers.get("etag", "")
        version = response.headers.get("last-modified", "") if etag[:1] != '"' else etag
        if version:
            self._validator.write_text(version)
        else:
            self._validator.unlink(missing_ok=True)

    def _write(self, response: httpx.Response, done: int) -> None:
        length = response.headers.get("content-length", "")
        total = done + int(length) if length.isdecimal() else 0
        start, told = b"" if done == 0 else _MAGIC, done
        with self._partial.open("ab" if done else "wb") as file:
            for (
                chunk
            ) in response.iter_raw():  # as they arrive: all of it stays if the connection breaks
                if len(start) < len(_MAGIC):
                    start += chunk[: len(_MAGIC)]
                    if not start.startswith(_MAGIC[: len(start)]):
                        raise FetchError(self._not_a_model(response, start))
                file.write(chunk)
                done += len(chunk)
                if done - told >= _REPORT_BYTES or done == total:
                    told = done
                    self._progress(FetchProgress("download", self._address.name, done, total))
        if not done:
            raise FetchError(f"{self._address} is empty.")

    def _not_a_model(self, response: httpx.Response, start: bytes) -> str:
        if "html" in response.headers.get("content-type", ""):
            return f"{self._address} is a web page, not a GGUF file: give the address of its download link."
        return f"{self._address} is not a GGUF file: it begins with {start[:4]!r}."


def _continues(response: httpx.Response, start: int) -> bool:
    return str(response.headers.get("content-range", "")).startswith(f"bytes {start}-")


def _check_scheme(url: str, *, private: bool) -> None:
    if urlsplit(url).scheme.lower() != "https" and not private:
        raise FetchError(
            "Models are fetched over https from public servers: http lets anyone on the way change them."
        )


def _check_redirect(url: str, target: str, *, from_private: bool) -> None:
    """Raises FetchError: the redirect leads to a less safe place."""
    scheme, before = urlsplit(target).scheme.lower(), urlsplit(url).scheme.lower()
    if scheme not in ("http", "https") or (scheme == "http" and before == "https"):
        raise FetchError(
            f"The server redirects to an address with {scheme or 'no scheme'}, not https."
        )
    if not from_private:
        if _is_private(target):
            raise FetchError("The server redirects to a private address, which is refused.")
        _check_scheme(target, private=False)


def _is_private(url: str) -> bool:
    """Whether a host is in a private network, or this machine; False for one that has no address."""
    try:
        host = urlsplit(url).hostname or ""
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError, UnicodeError):
        return False
    return any(not _is_global(str(address[0])) for *_, address in found)


def _is_global(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_global
