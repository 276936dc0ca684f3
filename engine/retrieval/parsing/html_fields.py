"""`field_text`: what a form field of an HTML page shows: its value, its label, the choices of a list."""

from engine.retrieval.parsing.html_tree import Element, elements, text_of

_UNTYPED = frozenset(["hidden", "password", "file", "color", "range"])
_MAX_OPTIONS = 30
_LONGEST_OPTION = 200


def field_text(field: Element) -> str:
    """The text of an `input` or `select`; empty if it shows none."""
    return _choices(field) if field.name == "select" else _input(field)


def _input(field: Element) -> str:
    attributes = field.attributes
    kind = attributes.get("type", "").lower()
    if kind in ("checkbox", "radio"):
        return "[x]" if "checked" in attributes else "[ ]"
    if kind == "image":
        return attributes.get("alt", "")
    return "" if kind in _UNTYPED else attributes.get("value", "")


def _choices(field: Element) -> str:
    """All choices; of a long list, such as all countries, those that are selected."""
    options = [one for one in elements(field) if one.name == "option"]
    if len(options) > _MAX_OPTIONS:
        options = [one for one in options if "selected" in one.attributes] or options[:1]
    labels = (one.attributes.get("label") or text_of(one, _LONGEST_OPTION) for one in options)
    return ", ".join(filter(None, (" ".join(label.split()) for label in labels)))
