"""A style sheet whose rules are parsed once per set of variables, which is once per theme.

Textual 8.2.8 parses in a second `Stylesheet` when variables change and drops its cache: everything is parsed
again when a class of widgets is mounted for the first time, and when a theme is shown again. It takes 13 ms.
"""

from functools import lru_cache

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

THEMES = 16
"""Number of sets of variables whose rules are kept."""
SOURCES = 256
"""Number of sources whose rules are kept for each: the app's own, and one for most widget classes."""

Rules = LRUCache[tuple[object, ...], list[RuleSet]]


@lru_cache(THEMES)
def _rules_of(variables: frozenset[tuple[str, str]]) -> Rules:
    return LRUCache(SOURCES)


class ParsedOnce(Stylesheet):
    """See the module's description. Rules are not changed after they are parsed, so sheets can share them."""

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._parse_cache = _rules_of(frozenset(self._variables.items()))

    def set_variables(self, variables: dict[str, str]) -> None:
        """Use other variables from the next `reparse` on."""
        self._parse_cache = LRUCache(1)  # the one that Textual clears
        super().set_variables(variables)
        self._parse_cache = _rules_of(frozenset(variables.items()))

    def reparse(self) -> None:
        """Parse all sources; this sheet stays as it is if one of them has an error."""
        parsed = ParsedOnce(variables=self._variables)
        parsed.source = self.source.copy()
        try:
            parsed.parse()
        except Exception:
            self._invalid_css.update(parsed._invalid_css)
            raise
        self._rules, self._rules_map, self._require_parse = parsed._rules, None, False
