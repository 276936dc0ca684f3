"""`fetch_page`: one bounded GET, with every connection and every redirect checked.

Bounds: size of the body, redirects, seconds for everything together, kinds of content. Proxies and
credentials of the environment are not used, and nothing is remembered between two calls. Compressed answers
are refused (none is asked for), so a small one cannot become a large one.
"""

import asyncio
import re
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import httpcore
import httpx

from agents.api.errors import InvalidTask
from agents.tools.address_guard import AddressGuard
from agents.tools.web_address import WebAddress, parse_web_address

MAX_BODY_BYTES = 2_000_000
MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_TEXT = re.compile(
    r"text/(?!event-stream)[\w.+-]+|application/(json|xml|xhtml\+xml|javascript|ecmascript|yaml|x-yaml|toml"
    r"|[\w.-]+\+(json|xml))"
)


@dataclass(frozen=True, slots=True)
class Page:
    """What a server answered.

    Attributes:
        url: of the answer, after redirects.
        status: HTTP status.
        content_type: without parameters, in lower case.
        text: the body as text.
    """

    url: str
    status: int
    content_type: str
    text: str


class _GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to addresses that the guard has checked, and to no others."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception | None = None
        for address in await self._guard.addresses(host, port):
            try:
                return await self._sockets.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError("no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("Sockets of this machine are not connected to.")

    async def sleep(self, seconds: float) -> None:
        await self._sockets.sleep(seconds)


async def fetch_page(
    url: str,
    domains: Sequence[str],
    guard: AddressGuard,
    *,
    tls: ssl.SSLContext | None = None,
    max_bytes: int = MAX_BODY_BYTES,
    seconds: float = 20.0,
) -> Page:
    """Get a page.

    Args:
        url: where it is.
        domains: the domains that may be asked, redirects included.
        guard: checks addresses.
        tls: certificates to trust; None takes the usual authorities.
        max_bytes: bound of the body.
        seconds: bound of the time.

    Raises:
        InvalidTask: the URL, an address, a redirect or the answer is not allowed, or the server failed.
    """
    address = parse_web_address(url, domains)
    context = httpx.create_ssl_context(trust_env=False) if tls is None else tls
    try:
        async with (
            asyncio.timeout(seconds),
            httpcore.AsyncConnectionPool(context, network_backend=_GuardedBackend(guard)) as pool,
        ):
            for _ in range(MAX_REDIRECTS + 1):
                answer = await _get(pool, address, max_bytes)
                if isinstance(answer, Page):
                    return answer
                address = _redirected(address, answer, domains)
    except TimeoutError:
        raise InvalidTask(f"{address.origin} took more than {seconds:g} s.") from None
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        reason = str(error) or type(error).__name__
        raise InvalidTask(f"{address.origin} cannot be reached: {reason:.200}.") from error
    raise InvalidTask(f"{url:.200} redirects more than {MAX_REDIRECTS} times.")


async def _get(
    pool: httpcore.AsyncConnectionPool, address: WebAddress, max_bytes: int
) -> Page | str:
    """The page, or the target of a redirect."""
    request = httpcore.URL(
        scheme=address.scheme.encode(),
        host=address.host.encode(),
        port=address.port,
        target=address.target.encode(),
    )
    headers: Mapping[bytes | str, bytes | str] = {
        "Host": address.host_header,
        "User-Agent": "pravaha",
        "Accept": "text/html, text/plain, application/json;q=0.9, text/*;q=0.8, application/xml;q=0.5",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
    async with pool.stream("GET", request, headers=headers) as response:
        found = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in response.headers
        }
        if response.status in _REDIRECTS and "location" in found:
            return found["location"]
        kind, charset = _content_type(found)
        body = bytearray()
        async for piece in response.aiter_stream():
            body += piece
            if len(body) > max_bytes:
                raise InvalidTask(f"{address} is larger than {max_bytes // 1000:,} kB.")
    return Page(str(address), response.status, kind, _decoded(bytes(body), charset))


def _content_type(headers: Mapping[str, str]) -> tuple[str, str]:
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise InvalidTask(f"The answer is compressed ({encoding:.40}), which was not asked for.")
    kind, _, parameters = headers.get("content-type", "text/plain").partition(";")
    kind = kind.strip().lower()
    if not _TEXT.fullmatch(kind):
        raise InvalidTask(f"The answer is {kind or 'of no kind'!r:.80}; only text is fetched.")
    charset = re.search(r"charset\s*=\s*\"?([\w.:-]{1,40})", parameters, re.IGNORECASE)
    return kind, charset[1] if charset else "utf-8"


def _decoded(body: bytes, charset: str) -> str:
    try:
        # `str` of a codec from bytes to bytes, such as `zip`, raises LookupError.
        return body.decode(charset, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def _redirected(address: WebAddress, location: str, domains: Sequence[str]) -> WebAddress:
    """The checked target of a redirect.

    Raises:
        InvalidTask: it is not allowed.
    """
    try:
        target = str(httpx.URL(str(address)).join(location))
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidTask(f"{address} redirects to no URL: {location!r:.200}.") from error
    found = parse_web_address(target, domains)
    if address.scheme == "https" and found.scheme == "http":
        raise InvalidTask(f"{address} redirects to a page without TLS: {found}.")
    return found
