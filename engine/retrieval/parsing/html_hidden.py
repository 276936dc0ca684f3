"""`HiddenParts`: which elements of an HTML page its reader never sees.

A part that is not displayed at first is content if the reader can open it: the panel of a tab or an
accordion, an answer below its question. It is no content if nothing opens it: a tracking pixel, a template, a
message for an error that has not happened. Mail programs run no scripts, so what a mail hides stays hidden
there, such as the line that only the list of messages shows (the preheader).
"""

import re
from collections.abc import Mapping, Sequence

from engine.retrieval.parsing.html_style import inline_style, is_tiny
from engine.retrieval.parsing.html_stylesheet import Stylesheet
from engine.retrieval.parsing.html_tree import Element, elements, text_of

_REFERENCES = ("aria-controls", "aria-details", "popovertarget", "commandfor", "for")
_DATA_REFERENCE = re.compile(
    r"data-[a-z-]*(?:target|tab|panel|toggle|content|collapse|accordion|controls)"
)
_WORD = re.compile(r"[a-z]+")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PANELS = frozenset(
    """accordion answer carousel collapse collapsible details disclosure expand expandable expander faq folded
    pane panel panels reveal slide spoiler step tab tabpane tabpanel tabs tabcontent toggle""".split()  # noqa: SIM905
)
"""Words in the class or id of what a reader opens."""
_NO_PANELS = frozenset(
    """ad ads alert banner consent cookie cookies dropdown error honeypot hp loader loading menu nav
    navbar navigation offcanvas overlay pixel placeholder preloader search skeleton spinner template toast
    tracking warning""".split()  # noqa: SIM905
)
_TRIGGERS = frozenset("accordion expand expander faq question toggle toggler trigger".split())  # noqa: SIM905
_PAGES = frozenset(["html", "body", "main", "article"])
"""Elements that scripts show when a page is ready."""
_WHOLE = frozenset(["main", "article", "h1"])
_REGIONS = frozenset("article aside footer form header main nav section table".split())  # noqa: SIM905
"""Elements whose buttons have nothing to do with what follows."""
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_ALTERNATIVES = frozenset(
    """sr-only visually-hidden visuallyhidden screen-reader-text screen-reader-only a-offscreen
    element-invisible screenreader show-for-sr u-visually-hidden""".split()  # noqa: SIM905
)
"""Classes of text that is only read out."""
_SITE = frozenset(["nav", "search"])
_APART = frozenset(["navigation", "search", "banner", "contentinfo", "menu", "menubar"])
_SIGNS = frozenset(
    """headerlink anchorjs-link header-anchor sphinxsidebar linenos lineno linenodiv copybtn copy-button
    copy-btn btn-copy clipboard-copy btn-clipboard""".split()  # noqa: SIM905
)
"""Classes of links to a heading, numbers of lines, and buttons that copy code."""
_CONSENT = re.compile(
    r"\A(?:onetrust-(?:banner|consent)\b.*|cybotcookiebotdialog|usercentrics-root|didomi-host"
    r"|qc-cmp2-container|truste-consent.*|iubenda-cs-banner|osano-cm-.*|cc-window|cookieconsent"
    r"|(?:[\w-]*[-_])?(?:cookies?|gdpr)[-_]?(?:consent|law)?[-_]?"
    r"(?:banner|bar|notice|popup|modal|dialog|overlay)(?:[-_].*)?)\Z"
)
_LONGEST_CONSENT = 3_000
_MAX_NAVIGATIONS = 200
"""Of how many it is checked that they do not hold the page: the check reads hundreds of elements."""
_LONGEST_NAVIGATION = 100
"""Characters of paragraphs in it."""


class HiddenParts:
    """Answers for one page."""

    def __init__(self, root: Element, *, mail: bool = False, shown: bool = False) -> None:
        """Look where the page refers to its parts.

        Args:
            root: the page.
            mail: whether it is the body of a mail.
            shown: whether what is not displayed at first counts as content, whatever opens it.
        """
        self._mail, self._shown = mail, shown
        self._stylesheet = Stylesheet(root)
        self._opened: set[str] = set()
        self._navigations = 0
        self._triggers: set[str] = set()
        if not mail:
            for element in elements(root):
                if element.attributes:
                    self._note(element)

    def _note(self, element: Element) -> None:
        attributes = element.attributes
        for name, value in attributes.items():
            if name in _REFERENCES or (
                name[:5] == "data-" and _DATA_REFERENCE.fullmatch(name[:40])
            ):
                self._opened.update(one.lstrip("#") for one in value[:1_000].split())
            elif name == "href" and value[:1] == "#":
                self._opened.add(value[1:])
        if "id" in attributes and _is_trigger(element):
            self._triggers.add(attributes["id"])

    def style_of(self, element: Element) -> Mapping[str, str]:
        """What is declared for the look of an element."""
        return self._stylesheet.style_of(element)

    def hides(self, element: Element, siblings: Sequence[Element | str], at: int) -> bool:
        """Whether an element is not content.

        Args:
            element: which one.
            siblings: the children of its parent.
            at: its index among them.
        """
        attributes = element.attributes
        style = self._stylesheet.style_of(element)
        if self._mail:
            return _is_hidden(attributes, style) or _is_hidden_in_mail(attributes, style)
        if not self._shown and self._is_apart(element):
            return True
        if _is_hidden(attributes, style) and element.name not in _PAGES and not self._shown:
            return not self._can_be_opened(element, siblings, at)
        return attributes.get("aria-hidden") == "true" and _is_decoration(
            element, siblings[max(0, at - 4) : at + 5]
        )

    def _is_apart(self, element: Element) -> bool:
        """Whether an element belongs to the site and not to the page, such as its navigation."""
        if element.name in _SITE or element.attributes.get("role") in _APART:
            self._navigations += 1
            return self._navigations > _MAX_NAVIGATIONS or not _is_page(element)
        return bool(element.attributes) and _is_sign(element)

    def _can_be_opened(self, element: Element, siblings: Sequence[Element | str], at: int) -> bool:
        attributes = element.attributes
        if (
            attributes.get("hidden", "").lower() == "until-found"
            or attributes.get("role") == "tabpanel"
        ):
            return True
        words = _words(attributes)
        if words & _NO_PANELS:
            return False
        if attributes.get("id", "") in self._opened or words & _PANELS:
            return True
        if any(one.name in _WHOLE for one in _first(element, 200)):
            return True  # the page itself, which a script shows when it is ready
        if any(one in self._triggers for one in attributes.get("aria-labelledby", "").split()):
            return True
        before, after = _neighbour(siblings, at, -1), _neighbour(siblings, at, 1)
        if after is not None and _shows_more(after):
            return True
        if before is None:
            return False
        inside = _first(before, 8) if before.name not in _REGIONS else ()
        if _is_trigger(before) or any(map(_is_trigger, inside)):
            return True
        # A heading with nothing below it but this: a question whose answer a script shows.
        alone = after is None or after.name == before.name
        return before.name == "dt" or (before.name in _HEADINGS and alone)


def is_hidden(element: Element) -> bool:
    """Whether an element is not displayed at first."""
    return _is_hidden(element.attributes, inline_style(element.attributes.get("style", "")))


def _is_hidden(attributes: Mapping[str, str], style: Mapping[str, str]) -> bool:
    display = style.get("display", "")
    if display == "none" or (display == "" and "hidden" in attributes):
        return True
    if style.get("visibility") in ("hidden", "collapse") or style.get("mso-hide") == "all":
        return True
    if style.get("position") in ("absolute", "fixed"):
        return any(
            style.get(side, "").startswith(("-999", "-1000", "-5000", "-2000"))
            for side in ("left", "top")
        )
    return False


def _is_hidden_in_mail(attributes: Mapping[str, str], style: Mapping[str, str]) -> bool:
    if is_tiny(style.get("opacity", "1"), 0):
        return True
    clipped = style.get("overflow") == "hidden"
    sizes = ("max-height", "height", "max-width", "width")
    return clipped and any(is_tiny(style.get(size, "auto"), 1) for size in sizes)


def _is_sign(element: Element) -> bool:
    """Whether an element is a sign at a heading, a number of a line, or asks for consent to cookies."""
    attributes = element.attributes
    classes = attributes.get("class", "").split()
    if not _SIGNS.isdisjoint(classes):
        return True
    if (
        element.name == "a"
        and attributes.get("href", "")[:1] == "#"
        and not _ALTERNATIVES.isdisjoint(classes)
    ):
        return True  # "skip to the content"
    if element.name in _PAGES:
        return False
    names = (attributes.get("id", ""), *classes[:20])
    return (
        any(_CONSENT.match(name[:100].lower()) for name in names if name)
        and len(text_of(element, _LONGEST_CONSENT)) < _LONGEST_CONSENT
    )


def _is_page(element: Element) -> bool:
    """Whether navigation holds the page: its end tag is missing, or the page's heading is inside."""
    if any(one.name in _WHOLE for one in _first(element, 200)):
        return True
    paragraphs = (one for one in _first(element, 500) if one.name == "p")
    return sum(len(text_of(one, 200)) for one in paragraphs) > _LONGEST_NAVIGATION


def _is_decoration(element: Element, near: Sequence[Element | str]) -> bool:
    """Whether something that is not read out is no text, or has a text beside it that is read out."""
    if element.attributes.get("class", "") == "katex-html":
        return True
    if (
        not any(character.isalnum() for character in text_of(element, 200))
        and element.name != "img"
    ):
        return not any(one.name == "img" for one in _first(element, 20))
    return any(
        isinstance(one, Element)
        and not _ALTERNATIVES.isdisjoint(one.attributes.get("class", "").split())
        and bool(text_of(one, 50).strip())
        for one in near
    )


def _is_trigger(element: Element) -> bool:
    attributes = element.attributes
    return (
        element.name in ("button", "summary")
        or "aria-expanded" in attributes
        or "onclick" in attributes
        or attributes.get("role") in ("button", "tab")
        or not _TRIGGERS.isdisjoint(_words(attributes))
    )


def _shows_more(element: Element) -> bool:
    """Whether an element is a control that shows what stands before it."""
    control = element.name in ("button", "a") or element.attributes.get("role") == "button"
    return control and (
        "aria-expanded" in element.attributes
        or "more" in _words(element.attributes)
        or "more" in text_of(element, 40).lower().split()
    )


def _words(attributes: Mapping[str, str]) -> set[str]:
    """The words of which the class and the id of an element consist."""
    names = f"{attributes.get('class', '')[:500]} {attributes.get('id', '')[:100]}"
    return set(_WORD.findall(_CAPITAL.sub("-", names).lower()))


def _neighbour(siblings: Sequence[Element | str], at: int, step: int) -> Element | None:
    at += step
    while 0 <= at < len(siblings):
        one = siblings[at]
        if isinstance(one, Element):
            return one
        if one.strip():
            return None
        at += step
    return None


def _first(element: Element, most: int) -> list[Element]:
    """The first elements inside of an element."""
    found: list[Element] = []
    for one in elements(element):
        found.append(one)
        if len(found) >= most:
            break
    return found
