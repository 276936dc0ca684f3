"""Independent checks of the string formats that JSON schemas may require here.

`jsonschema` checks most formats only with optional packages, and passes every text without them.
"""

import ipaddress
import re
from datetime import date

import jsonschema

LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOST = re.compile(rf"{LABEL}(?:\.{LABEL})*")  # RFC 1123
DOMAIN = re.compile(HOST.pattern.replace("{0,61}", "*"))  # RFC 5321, whose rule has no lengths
ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
LOCAL = re.compile(rf'{ATOM}(?:\.{ATOM})*|"(?:[ !#-\[\]-~]|\\[ -~])*"')
TIME = re.compile(
    r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
CLOCK = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
DAYS = rf"(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)(?:{CLOCK})?"
DURATION = re.compile(rf"P(?:\d+W|{DAYS}|{CLOCK})", re.ASCII)  # RFC 3339, appendix A
URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
)


def is_date(text):
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is None:
        return False
    # RFC 3339 has a year 0000, a leap year like 2000; Python has none.
    year = "2000" if text.startswith("0000") else text[:4]
    try:
        return bool(date.fromisoformat(year + text[4:]))
    except ValueError:
        return False


def is_date_time(text):
    day, _, clock = text.partition("T" if "T" in text else "t")
    return is_date(day) and TIME.fullmatch(clock) is not None


def is_hostname(text):
    return len(text) <= 253 and HOST.fullmatch(text) is not None


def is_email(text):
    local, _, host = text.rpartition("@")
    if host.startswith("[") and host.endswith("]"):
        return is_address(host[1:-1].removeprefix("IPv6:")) and bool(LOCAL.fullmatch(local))
    return bool(DOMAIN.fullmatch(host) and LOCAL.fullmatch(local))


def is_address(text, kind=ipaddress.ip_address):
    try:
        return "%" not in text and bool(kind(text) or True)
    except ValueError:
        return False


CHECKS = {
    "date": is_date,
    "time": lambda text: TIME.fullmatch(text) is not None,
    "date-time": is_date_time,
    "duration": lambda text: DURATION.fullmatch(text) is not None,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": lambda text: is_address(text, ipaddress.IPv4Address),
    "ipv6": lambda text: is_address(text, ipaddress.IPv6Address),
    "uuid": lambda text: UUID.fullmatch(text) is not None,
    "uri": lambda text: URI.fullmatch(text) is not None,
}
"""Every format that `docs/structured-output.md` lists."""


def format_checker():
    """These checks for `jsonschema`."""
    checker = jsonschema.FormatChecker(formats=())
    for name, check in CHECKS.items():
        checker.checks(name)(lambda value, check=check: not isinstance(value, str) or check(value))
    return checker


def validate(instance, schema):
    """Like `jsonschema.validate`, formats included."""
    jsonschema.Draft202012Validator(schema, format_checker=format_checker()).validate(instance)
