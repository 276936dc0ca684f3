"""`RedactionMap`: placeholders of one conversation, and their undoing in a text that arrives in pieces.

The same value gets the same placeholder throughout a conversation, so that a model can still tell two people
apart. A placeholder is short (`⟦EMAIL_1⟧`) and is replaced only if this conversation issued it.
"""

import re
from collections.abc import Mapping

from agents.guardrails.detection import Kind

_PLACEHOLDER = re.compile(r"⟦([A-Z_]{2,20})_(\d{1,6})⟧")
_UNFINISHED = re.compile(r"⟦[A-Z_0-9]{0,27}$")


class RedactionMap:
    """Placeholders and what they stand for. One thread at a time."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        """Begin with values by placeholder, as `values` returned them."""
        self._values = dict(values or {})
        self._placeholders = {
            (placeholder[1:].rpartition("_")[0], value): placeholder
            for placeholder, value in self._values.items()
        }

    @property
    def values(self) -> Mapping[str, str]:
        """What each placeholder stands for."""
        return dict(self._values)

    def placeholder(self, kind: Kind, value: str) -> str:
        """The placeholder of a value; a new one if there is none."""
        name = kind.value.upper()
        known = self._placeholders.get((name, value))
        if known is not None:
            return known
        number = 1 + sum(kind_name == name for kind_name, _ in self._placeholders)
        placeholder = f"⟦{name}_{number}⟧"
        self._values[placeholder] = value
        self._placeholders[name, value] = placeholder
        return placeholder

    def __len__(self) -> int:
        return len(self._values)

    def kinds_in(self, text: str) -> list[Kind]:
        """The kinds of the placeholders of this conversation in a text, in order."""
        found = (match for match in _PLACEHOLDER.finditer(text) if match[0] in self._values)
        return [Kind(match[1].lower()) for match in found]

    def restore(self, text: str) -> str:
        """The text with the placeholders that this conversation issued replaced by their values."""
        return _PLACEHOLDER.sub(lambda match: self._values.get(match[0], match[0]), text)


class StreamRestore:
    """Restores a text that arrives in pieces; an unfinished placeholder is held back."""

    def __init__(self, redactions: RedactionMap) -> None:
        """Restore with the placeholders of `redactions`."""
        self._redactions = redactions
        self._held = ""

    def feed(self, piece: str) -> str:
        """The restored text that is certain now."""
        if not self._held and "⟦" not in piece:
            return piece
        text = self._held + piece
        unfinished = _UNFINISHED.search(text)
        end = len(text) if unfinished is None else unfinished.start()
        self._held = text[end:]
        return self._redactions.restore(text[:end])

    def finish(self) -> str:
        """The rest of the text."""
        held, self._held = self._held, ""
        return self._redactions.restore(held)
