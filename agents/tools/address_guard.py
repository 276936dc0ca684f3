"""`AddressGuard`: which network addresses a fetch may connect to (CWE-918, server-side request forgery).

A host is resolved once for each connection, all of its addresses are checked, and the connection is made to
one of these addresses, so that a second answer of the name server is never used (DNS rebinding). Only
addresses of the public internet pass: private, loopback, link-local, shared, multicast, reserved and
unspecified ones do not, nor forms of IPv6 that carry such an IPv4 address, nor the addresses of cloud
metadata services that lie in public ranges.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from agents.api.errors import InvalidTask

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Addresses of a host as text, for a port; raises `OSError` if there are none."""

RESOLVE_S = 5.0
_DENIED_V4 = (
    IPv4Network("192.0.0.0/24"),  # protocol assignments, which Python counts in parts as global
    IPv4Network("168.63.129.16/32"),  # the host of virtual machines at a cloud provider
    IPv4Network("192.88.99.0/24"),  # 6to4 relays
)
_NAT64 = IPv6Network("64:ff9b::/96")
_DENIED_V6 = (
    IPv6Network("::/96"),  # IPv4-compatible
    IPv6Network("64:ff9b:1::/48"),  # NAT64 of a local network
    IPv6Network("2001::/23"),  # protocol assignments, among them Teredo
    IPv6Network("2002::/16"),  # 6to4
    IPv6Network("3fff::/20"),  # documentation
    IPv6Network("fec0::/10"),  # site-local
)
"""IPv6 ranges that lead elsewhere or nowhere, whatever Python's version says of them."""


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet."""
    if isinstance(address, IPv4Address):
        return (
            address.is_global
            and not (address.is_multicast or address.is_reserved or address.is_unspecified)
            and not any(address in network for network in _DENIED_V4)
        )
    if address.scope_id is not None or address.ipv4_mapped is not None:
        return False
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    return (
        address.is_global
        and not (address.is_multicast or address.is_reserved or address.is_unspecified)
        and not any(address in network for network in _DENIED_V6)
    )


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Addresses by the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class AddressGuard:
    """Resolves hosts and refuses those with an address that is not allowed."""

    def __init__(
        self,
        resolver: Resolver = system_resolver,
        *,
        is_allowed: Callable[[Address], bool] = is_public,
    ) -> None:
        self._resolver = resolver
        self._is_allowed = is_allowed

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses to connect to, in the resolver's order.

        Raises:
            InvalidTask: the host is unknown, or one of its addresses is not allowed.
        """
        try:
            async with asyncio.timeout(RESOLVE_S):
                found = await self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise InvalidTask(f"The host {host:.200} is not known: {error!s:.200}.") from error
        except TimeoutError:
            raise InvalidTask(
                f"The host {host:.200} was not resolved in {RESOLVE_S:g} s."
            ) from None
        checked = list(dict.fromkeys(found))
        for text in checked:
            # One forbidden address refuses the host: its owner decides which one is tried first.
            if not self._is_allowed(_parsed(text)):
                raise InvalidTask(
                    f"{host:.200} has the address {text:.60}, which is not one of the public internet."
                )
        if not checked:
            raise InvalidTask(f"The host {host:.200} has no address.")
        return checked


def _parsed(text: str) -> Address:
    try:
        return ip_address(text)
    except ValueError as error:
        raise InvalidTask(f"{text!r:.60} is not an address.") from error
