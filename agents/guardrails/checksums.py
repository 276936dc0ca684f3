"""Check digits of identifiers. Arguments are strings of ASCII digits and capitals, separators removed."""

_VERHOEFF_MULTIPLY = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678", "5987604321", "6598710432",
    "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_PERMUTE = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415",
    "7046913258",
)  # fmt: skip


def luhn(digits: str) -> bool:
    """ISO/IEC 7812-1, annex B: the check digit of payment cards."""
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + index % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def verhoeff(digits: str) -> bool:
    """Verhoeff 1969: a check digit over the dihedral group D5; Aadhaar numbers use it."""
    check = 0
    for index, digit in enumerate(reversed(digits)):
        check = int(_VERHOEFF_MULTIPLY[check][int(_VERHOEFF_PERMUTE[index % 8][int(digit)])])
    return check == 0


def mod97(text: str) -> bool:
    """ISO 7064 MOD 97-10 as in ISO 13616: the first four characters move to the end, A is 10."""
    rotated = text[4:] + text[:4]
    return int("".join(str(int(character, 36)) for character in rotated)) % 97 == 1


def weighted(digits: str, weights: tuple[int, ...]) -> int:
    """The sum of digits times weights; the shorter of both decides how many."""
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))
