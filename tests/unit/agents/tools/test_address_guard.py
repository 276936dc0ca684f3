"""Which addresses and URLs a fetch may use."""

from ipaddress import ip_address

import pytest

from agents.api.errors import InvalidTask
from agents.tools.address_guard import AddressGuard, is_public, system_resolver
from agents.tools.web_address import parse_web_address
from agents.tools.web_domains import check_domain

PRIVATE = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16",
    "192.88.99.1", "::1", "::", "fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1",
    "2001:db8::1", "100::1", "3fff::1", "2001:10::1",
    "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:a9fe:a9fe",  # IPv4-mapped
    "::127.0.0.1",  # IPv4-compatible
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808",  # NAT64
    "2002:7f00:1::1", "2002:808:808::1",  # 6to4
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
]  # fmt: skip
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "151.101.0.223",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused(address):
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_passes(address):
    assert is_public(ip_address(address))


async def _resolves_to(*addresses):
    async def resolve(host, port):
        return addresses

    return await AddressGuard(resolve).addresses("name.example", 443)


async def test_a_name_is_refused_if_one_of_its_addresses_is_private():
    assert await _resolves_to("8.8.8.8", "8.8.4.4", "8.8.8.8") == ["8.8.8.8", "8.8.4.4"]
    for private in PRIVATE:
        with pytest.raises(InvalidTask, match="public internet"):
            await _resolves_to("8.8.8.8", private)
    with pytest.raises(InvalidTask, match="no address"):
        await _resolves_to()


@pytest.mark.parametrize(
    "host", ["2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "localhost"]
)
async def test_the_systems_spellings_of_loopback_are_refused(host):
    """Whatever form the system's resolver understands, the address that it means is checked."""
    with pytest.raises(InvalidTask, match=r"public internet|is not known"):
        await AddressGuard(system_resolver).addresses(host, 80)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://docs.example/", "Only http and https"),
        ("file:///etc/passwd", "Only http and https"),
        ("gopher://docs.example/", "Only http and https"),
        ("//docs.example/", "Only http and https"),
        ("docs.example", "Only http and https"),
        ("http://user:pw@docs.example/", "user name or password"),
        ("http://docs.example@evil.example/", "user name or password"),
        ("http://docs.example\\@evil.example/", "backslash"),
        ("http://docs.example/a b", "white space"),
        ("http://docs.example/\n", "white space"),
        ("http://evil.example/", "not one of the domains"),
        ("http://docs.example.evil.example/", "not one of the domains"),
        ("http://xdocs.example/", "not one of the domains"),
        ("http://docs.example:8080/", "not one of the domains"),
        ("http://127.0.0.1/", "not one of the domains"),
        ("http://[::1]/", "not one of the domains"),
        ("http://[::ffff:127.0.0.1]/", "not one of the domains"),
        ("http://2130706433/", "neither a host name nor an address"),
        ("http://0x7f000001/", "neither a host name nor an address"),
        ("http://0177.0.0.1/", "is not a URL|neither a host name"),
        ("http://127.1/", "neither a host name nor an address"),
        ("http://docs.example:99999/", "not one of the domains"),
        ("http://[::1/", "is not a URL"),
        ("http:///x", "is not a host name"),
        ("http://docs..example/", "is not a host name"),
        ("http://docs.example/" + "x" * 2000, "longer than"),
        ("http://example/", "not one of the domains"),
        ("http://wild.example/", "not one of the domains"),
        ("http://awild.example/", "not one of the domains"),
    ],
)
def test_a_url_is_refused_by_its_form_or_domain(url, message):
    with pytest.raises(InvalidTask, match=message):
        parse_web_address(url, ("docs.example", "*.wild.example", "other.example:8443"))


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://docs.example", "http://docs.example/"),
        ("https://DOCS.example:443/a?b=c#d", "https://docs.example/a?b=c"),
        ("https://docs.example./x", "https://docs.example/x"),
        ("https://a.b.wild.example/", "https://a.b.wild.example/"),
        ("https://other.example:8443/", "https://other.example:8443/"),
        ("https://bücher.wild.example/", "https://xn--bcher-kva.wild.example/"),
    ],
)
def test_an_allowed_url_is_sent_in_one_form(url, sent):
    domains = ("docs.example", "*.wild.example", "other.example:8443")
    assert str(parse_web_address(url, domains)) == sent


def test_entries_of_the_list_are_domains():
    assert check_domain(" *.Python.ORG. ") == "*.python.org"
    assert check_domain("example.org:8443") == "example.org:8443"
    for wrong in (
        "*",
        "",
        "https://example.org",
        "example.org/x",
        "*.*.org",
        "a..b",
        "x:y",
        "exa mple.org",
    ):
        with pytest.raises(ValueError, match="is not a domain"):
            check_domain(wrong)
