"""`integer`, `is_true`: values of attributes in office documents, which may be anything."""

from engine.retrieval.parsing.safe_xml import Attributes

_DIGITS = 6
"""Of the longest number; a longer one is no count of anything in a document."""
_FALSE = frozenset(("0", "false", "off", "none"))


def integer(attributes: Attributes, name: str, default: int) -> int:
    """The number, not negative; the default without one that makes sense."""
    value = attributes.get(name, "")
    return int(value) if value.isdecimal() and len(value) <= _DIGITS else default


def is_true(attributes: Attributes, name: str, *, default: bool = False) -> bool:
    """Whether an attribute switches something on; the default without it."""
    value = attributes.get(name)
    return default if value is None else value not in _FALSE
