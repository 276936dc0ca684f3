"""Personal data: payment cards, IBANs, phone numbers, e-mail and IP addresses.

Everything that has a check digit is reported only if it holds. What has none needs a word before it that
names it. Precision comes first: source code is full of digits.
"""

import ipaddress
import re
from collections.abc import Sequence

from agents.guardrails.checksums import luhn, mod97
from agents.guardrails.detection import Kind
from agents.guardrails.recognizer import Recognizer, Validate, context, recognizer

_ISSUERS: tuple[tuple[range, int, frozenset[int]], ...] = (
    (range(4, 5), 1, frozenset({13, 16, 19})),  # Visa
    (range(51, 56), 2, frozenset({16})),  # Mastercard
    (range(2221, 2721), 4, frozenset({16})),
    (range(34, 35), 2, frozenset({15})),  # American Express
    (range(37, 38), 2, frozenset({15})),
    (range(6011, 6012), 4, frozenset({16, 19})),  # Discover
    (range(644, 660), 3, frozenset({16, 19})),
    (range(300, 306), 3, frozenset({14})),  # Diners Club
    (range(36, 37), 2, frozenset({14})),
    (range(38, 40), 2, frozenset({14})),
    (range(3528, 3590), 4, frozenset({16, 19})),  # JCB
    (range(62, 63), 2, frozenset({16, 19})),  # UnionPay
    (range(60, 61), 2, frozenset({16})),  # RuPay
    (range(81, 83), 2, frozenset({16})),
    (range(508, 509), 3, frozenset({16})),
    (range(2200, 2205), 4, frozenset({16})),  # Mir
)
"""Leading digits, how many there are, and the lengths of the numbers (ISO/IEC 7812, issuers' pages)."""

_IBANS = """
AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29
ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28
LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25
QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20
"""
_IBAN_LENGTHS = {entry[:2]: int(entry[2:]) for entry in _IBANS.split()}
"""Total length by country (SWIFT IBAN registry)."""

_LONG_DOMAINS = """
com org net edu gov mil int info biz name pro mobi jobs travel museum aero coop asia tel app dev tech cloud
online site store shop blog email agency company solutions services group global live world today life space
website xyz top club digital media studio design systems software network academy education university
institute health care bank finance consulting energy engineering berlin london paris amsterdam wien koeln
hamburg nyc tokyo
"""
_DOMAINS = frozenset(_LONG_DOMAINS.split())
"""Top-level domains of more than two letters. Others are attribute names in code: `x@y.weight`."""
_RESERVED_DOMAIN = re.compile(
    r"(?i)(?:^|\.)(?:example(?:\.(?:com|org|net|edu))?|test|invalid|localhost|local)$"
)
_NOBODY = frozenset({"git", "noreply", "no-reply", "donotreply", "do-not-reply", "mailer-daemon"})
_PHONE_WORD = re.compile(
    r"(?i)\b(?:tel|telephone|telefon|phone|mobile|cell|call|fax|whatsapp|mob|handy|ring|sms)\w{0,3}\b"
    r"[^\n\d]{0,24}$"
)
_VERSION_BEFORE = re.compile(r"(?i)(?:version|release|v|==|>=|~=|oid)[ :\"'=]*$")


def personal_data(phone_regions: Sequence[str]) -> tuple[Recognizer, ...]:
    """The recognizers. National phone numbers are those of `phone_regions`."""
    return (
        recognizer(
            Kind.CARD,
            "payment_card",
            r"(?<![\w.+])(?<!\d[ -])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?"
            r"|3\d{3}([ -])\d{6}\2\d{4,5})(?![\w])",
            alphabet="[0-9 -]",
            max_chars=23,
            validate=_card,
        ),
        recognizer(
            Kind.IBAN,
            "iban",
            r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,29}",
            alphabet="[A-Z0-9 ]",
            max_chars=62,
            validate=_iban,
        ),
        recognizer(
            Kind.PHONE,
            "phone",
            r"(?<![\w+.(/-])(?<!\d )(?:\+\d|\(?\d)[\d ().\-/]{5,22}\d(?!\w)",
            alphabet=r"[0-9+() ./-]",
            max_chars=26,
            validate=_phone(tuple(phone_regions)),
            confidence=0.9,
        ),
        recognizer(
            Kind.EMAIL,
            "email",
            r"(?<![\w.+%-])[A-Za-z0-9_][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}"
            r"(?![\w(-])",
            alphabet=r"[A-Za-z0-9._%+@-]",
            max_chars=474,
            hints=("@",),
            validate=_email,
        ),
        recognizer(
            Kind.IP_ADDRESS,
            "ip_address",
            r"(?<![\w.:])(?:(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:]))",
            alphabet="[0-9A-Fa-f.:]",
            max_chars=40,
            validate=_ip_address,
            confidence=0.8,
        ),
    )


def _card(text: str, start: int, end: int) -> tuple[int, int] | None:
    digits = re.sub("[ -]", "", text[start:end])
    known = any(
        int(digits[:leading]) in numbers and len(digits) in lengths
        for numbers, leading, lengths in _ISSUERS
    )
    return (start, end) if known and luhn(digits) else None


def _iban(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The pattern may run into words behind the number, so the country's length decides."""
    length = _IBAN_LENGTHS.get(text[start : start + 2])
    if length is None:
        return None
    taken = 0
    for offset in range(start, end):
        taken += text[offset] != " "
        if taken == length:
            break
    else:
        return None
    end = offset + 1
    if end < len(text) and text[end].isalnum():
        return None
    return (start, end) if mod97(text[start:end].replace(" ", "")) else None


def _phone(regions: tuple[str, ...]) -> Validate:
    def validate(text: str, start: int, end: int) -> tuple[int, int] | None:
        number = text[start:end]
        digits = sum(character.isdigit() for character in number)
        if not 7 <= digits <= 15 or len(set(number) & set("0123456789")) < 3:
            return None
        international = number.startswith("+")
        if not international and not _PHONE_WORD.search(context(text, start, 48)):
            return None
        import phonenumbers

        for region in (None,) if international else regions:
            try:
                parsed = phonenumbers.parse(number, region)
            except phonenumbers.NumberParseException:
                continue
            if phonenumbers.is_valid_number(parsed):
                return start, end
        return None

    return validate


def _email(text: str, start: int, end: int) -> tuple[int, int] | None:
    local, _, domain = text[start:end].rpartition("@")
    top = domain.rpartition(".")[2].lower()
    if len(top) > 2 and top not in _DOMAINS:
        return None
    if local.lower() in _NOBODY or _RESERVED_DOMAIN.search(domain):
        return None
    # The user part of a URL is a credential, which the secrets' recognizers report.
    return None if context(text, start, 3).endswith(("://", ":")) else (start, end)


def _ip_address(text: str, start: int, end: int) -> tuple[int, int] | None:
    try:
        address = ipaddress.ip_address(text[start:end])
    except ValueError:
        return None
    if not address.is_global or _VERSION_BEFORE.search(context(text, start, 16)):
        return None
    return start, end
