"""`ruby_text`: a word with its reading, `漢字(かんじ)`, from an HTML element `ruby`."""

from engine.retrieval.parsing.html_tree import Element, elements

_INSIDE = frozenset("a b em i rb rp rt rtc span strong".split())  # noqa: SIM905
_READINGS = frozenset(["rt", "rtc"])
_MOST_ELEMENTS = 200


def ruby_text(ruby: Element) -> str | None:
    """The text; None if other things are inside, such as the rest of a page where the end tag is missing."""
    for count, inside in enumerate(elements(ruby)):
        if inside.name not in _INSIDE or count > _MOST_ELEMENTS:
            return None
    word: list[str] = []
    reading: list[str] = []
    waiting: list[tuple[Element | str, bool]] = [(ruby, False)]
    while waiting:
        one, above = waiting.pop()
        if isinstance(one, str):
            (reading if above else word).append(one)
        elif one.name != "rp":
            above = above or one.name in _READINGS
            waiting += ((child, above) for child in reversed(one.children))
    base, over = ("".join("".join(parts).split()) for parts in (word, reading))
    return f"{base}({over})" if over else base
