"""Telephone numbers."""


def normalized(phone: str | None, country: str = "49") -> str | None:
    """A number as `+49301234`, or None for an unknown one."""
    if phone is None:
        return None
    digits = "".join(one for one in phone if one.isdigit())
    if phone.strip().startswith("+"):
        return f"+{digits}"
    if digits.startswith("00"):
        return f"+{digits[2:]}"
    if digits.startswith("0"):
        return f"+{country}{digits[1:]}"
    return f"+{country}{digits}"


def pretty(phone: str) -> str:
    """A normalized number in groups of three digits."""
    digits = phone.removeprefix("+")
    groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
    return "+" + " ".join(groups)
