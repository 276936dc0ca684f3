"""`Tabs`: which tab of an HTML page belongs to which panel. Each label is read once, before its panel."""

from engine.retrieval.parsing.html_tree import Element, elements, text_of

_LONGEST_LABEL = 200


class Tabs:
    """The tabs of one page, as far as it says which panels they show."""

    def __init__(self, root: Element) -> None:
        """Look for tabs and panels by their roles."""
        tabs: list[Element] = []
        panels: dict[str, Element] = {}
        for element in elements(root):
            match element.attributes.get("role"):
                case "tab":
                    tabs.append(element)
                case "tabpanel":
                    panels.setdefault(element.attributes.get("id", ""), element)
        named = {one.attributes.get("aria-labelledby", ""): one for one in panels.values()}
        self._labels: dict[int, str] = {}
        self._moved: set[int] = set()
        for tab in tabs:
            attributes = tab.attributes
            panel = panels.get(attributes.get("aria-controls") or "?") or named.get(
                attributes.get("id") or "?"
            )
            label = " ".join(text_of(tab, _LONGEST_LABEL).split())
            if panel is not None and label and id(panel) not in self._labels:
                self._labels[id(panel)] = label
                self._moved.add(id(tab))

    def label_of(self, panel: Element) -> str:
        """What the tab of a panel says; empty for other elements."""
        return self._labels.get(id(panel), "")

    def is_moved(self, tab: Element) -> bool:
        """Whether an element is a tab whose label stands before its panel."""
        return id(tab) in self._moved
