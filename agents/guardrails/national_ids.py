"""National identification numbers, reported only where their check digits hold.

A short number whose check holds by chance once in ten or so needs a word before it that names it.
"""

import re
from collections.abc import Callable

from agents.guardrails.checksums import luhn, verhoeff, weighted
from agents.guardrails.detection import Kind
from agents.guardrails.recognizer import Recognizer, Validate, context, recognizer

_SEPARATORS = re.compile(r"[ .\-]")
_FISCAL_ORDER = "BAKPLCQDREVOSFTGUHMINJWZYX"
_FISCAL_ODD = {letter: _FISCAL_ORDER.index(letter) for letter in _FISCAL_ORDER} | {
    str(digit): _FISCAL_ORDER.index("ABCDEFGHIJ"[digit]) for digit in range(10)
}
"""Values of the characters at odd places (decree of 23 December 1976): digits count as letters A to J."""


def national_ids() -> tuple[Recognizer, ...]:
    """The recognizers, by country."""
    return (
        _number(
            "us_social_security",
            r"\d{3}-\d{2}-\d{4}",
            _social_security,
            words=r"ssn|social security|social-security|tax ?payer|tin",
        ),
        _number("in_aadhaar", r"[2-9]\d{3} \d{4} \d{4}", verhoeff),
        _number("in_aadhaar_plain", r"[2-9]\d{11}", verhoeff, words=r"aa?dhaa?r|uidai|uid"),
        _number(
            "in_pan",
            r"[A-Z]{3}[ABCFGHLJPT][A-Z]\d{4}[A-Z]",
            lambda value: True,
            words=r"pan\b|income tax",
        ),
        _number(
            "gb_national_insurance",
            r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]",
            lambda value: value[:2] not in {"BG", "GB", "NK", "KN", "TN", "NT", "ZZ"},
            words=r"national insurance|nino|ni number|insurance number",
        ),
        _number("es_dni", r"\d{8}-?[A-Z]", _dni, words=r"dni|nif|identidad|spanish id"),
        _number("es_nie", r"[XYZ]-?\d{7}-?[A-Z]", _nie, words=r"nie\b|nif|extranjer|spanish id"),
        _number("fr_nir", r"[12] ?\d{2} ?\d{2} ?\d{2} ?\d{3} ?\d{3} ?\d{2}", _nir),
        _number(
            "it_codice_fiscale", r"[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]", _codice_fiscale
        ),
        _number("br_cpf", r"\d{3}\.\d{3}\.\d{3}-\d{2}", _cpf),
        _number("pl_pesel", r"\d{11}", _pesel, words=r"pesel"),
        _number(
            "ca_social_insurance",
            r"\d{3}[ -]\d{3}[ -]\d{3}",
            luhn,
            words=r"\bsin\b|social insurance",
        ),
        _number(
            "de_tax_id",
            r"[1-9]\d{10}",
            _german_tax_id,
            words=r"steuer|tax id|idnr|identifikationsnummer",
        ),
        _number("nl_bsn", r"\d{9}", _bsn, words=r"bsn|burgerservice|sofi"),
        _number(
            "se_personnummer",
            r"(?:\d{2})?\d{6}[-+]\d{4}",
            _personnummer,
            words=r"personnummer|swedish",
        ),
    )


def _number(
    name: str, pattern: str, holds: Callable[[str], bool], *, words: str = ""
) -> Recognizer:
    return recognizer(
        Kind.NATIONAL_ID,
        name,
        rf"(?<![\w.])(?<!\d[ -])(?:{pattern})(?!\w)",
        alphabet=r"[A-Z0-9 .+-]",
        max_chars=24,
        validate=_validate(holds, words),
        confidence=0.8 if words else 0.95,
    )


def _validate(holds: Callable[[str], bool], words: str) -> Validate:
    named = re.compile(rf"(?i)(?:\b|_)(?:{words})[^\n]{{0,40}}$") if words else None

    def validate(text: str, start: int, end: int) -> tuple[int, int] | None:
        if named is not None and not named.search(context(text, start, 80)):
            return None
        value = _SEPARATORS.sub("", text[start:end])
        return (start, end) if len(set(value)) > 2 and holds(value) else None

    return validate


def _social_security(value: str) -> bool:
    area, group, serial = value[:3], value[3:5], value[5:]
    return area not in {"000", "666"} and area < "900" and group != "00" and serial != "0000"


def _dni(value: str) -> bool:
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(value[:8]) % 23] == value[8]


def _nie(value: str) -> bool:
    return _dni(str("XYZ".index(value[0])) + value[1:])


def _nir(value: str) -> bool:
    return "01" <= value[3:5] <= "12" and int(value[13:]) == 97 - int(value[:13]) % 97


def _codice_fiscale(value: str) -> bool:
    odd = sum(_FISCAL_ODD[character] for character in value[:15:2])
    even = sum(
        int(character) if character.isdigit() else ord(character) - ord("A")
        for character in value[1:15:2]
    )
    return (odd + even) % 26 == ord(value[15]) - ord("A")


def _cpf(value: str) -> bool:
    return all(
        weighted(value, tuple(range(length + 1, 1, -1))) * 10 % 11 % 10 == int(value[length])
        for length in (9, 10)
    )


def _pesel(value: str) -> bool:
    month = int(value[2:4]) % 20
    return 1 <= month <= 12 and weighted(value, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def _german_tax_id(value: str) -> bool:
    """ISO 7064 MOD 11,10."""
    product = 10
    for digit in value[:10]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == int(value[10])


def _bsn(value: str) -> bool:
    return weighted(value, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _personnummer(value: str) -> bool:
    digits = value.replace("+", "")[-10:]
    return "01" <= digits[2:4] <= "12" and luhn(digits)
