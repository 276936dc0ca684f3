"""`WebAddress`: a URL that may be fetched by its form and its domain.

One parser for check and connection: what `parse_web_address` returns is what is connected to. Hosts that
resolvers read as numbers (`2130706433`, `0x7f.1`, `0177.0.0.1`) are refused by their form.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

from agents.api.errors import InvalidTask

MAX_URL_CHARS = 2_000
_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A checked URL.

    Attributes:
        scheme: `http` or `https`.
        host: lower-case ASCII name or address, without brackets.
        port: its port.
        target: path and query as they are sent.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> str:
        """Scheme, host and port, the default one left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def host_header(self) -> str:
        """The value of the header `Host`."""
        return self.origin.partition("://")[2]

    def __str__(self) -> str:
        return self.origin + self.target


def parse_web_address(url: str, domains: Sequence[str]) -> WebAddress:
    """The checked parts of a URL.

    Args:
        url: as it was given.
        domains: entries as `check_domain` returns them.

    Raises:
        InvalidTask: its form, scheme, host or port is not allowed, or its domain is not listed.
    """
    import httpx  # 0.1 s, needed by few starts

    if len(url) > MAX_URL_CHARS:
        raise InvalidTask(f"The URL is longer than {MAX_URL_CHARS:,} characters.")
    if "\\" in url or any(letter.isspace() for letter in url):
        raise InvalidTask(f"{url!r:.200} is not a URL: it has a backslash or white space.")
    try:
        parsed = httpx.URL(url)
        host, port = parsed.raw_host.decode("ascii").lower().rstrip("."), parsed.port
        target = parsed.raw_path.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, ValueError, TypeError) as error:
        raise InvalidTask(f"{url!r:.200} is not a URL: {error!s:.200}.") from error
    if parsed.scheme not in _PORTS:
        raise InvalidTask(
            f"Only http and https are fetched, not {parsed.scheme or 'no scheme'!r:.40}."
        )
    if parsed.userinfo:
        raise InvalidTask("A URL with a user name or password is not fetched.")
    port = _PORTS[parsed.scheme] if port is None else port
    _check_host(host)
    address = WebAddress(parsed.scheme, host, port, target or "/")
    if not any(_matches(domain, address) for domain in domains):
        listed = ", ".join(domains[:10]) or "none"
        raise InvalidTask(
            f"{address.host_header:.200} is not one of the domains in the setting http_domains: {listed}."
        )
    return address


def _check_host(host: str) -> None:
    if ":" in host:
        return  # an IPv6 address: the parser accepts no other host with a colon
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidTask(f"{host!r:.200} is not a host name.")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            IPv4Address(host)
        except AddressValueError as error:
            raise InvalidTask(f"{host!r:.200} is neither a host name nor an address.") from error


def _matches(domain: str, address: WebAddress) -> bool:
    name, port = domain, _PORTS[address.scheme]
    head, colon, tail = domain.rpartition(":")
    if colon and not domain.endswith("]") and tail.isdigit():
        name, port = head, int(tail)
    if port != address.port:
        return False
    if name.startswith("*."):
        return address.host.endswith(name[1:]) and address.host != name[2:]
    return address.host == name.strip("[]")
