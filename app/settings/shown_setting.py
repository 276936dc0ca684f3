"""`ShownSetting`: a setting as the screen lists it, without importing pydantic."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting.

    Attributes:
        name: its name in `pravaha.toml`.
        heading: the group that it belongs to.
        value: its present value; empty if it has none, or is secret.
        help: one sentence.
        words: further words for it.
        written: how it is set: the option, or the name in `pravaha.toml`.
        is_switch: whether it is on or off, so that its option takes no value.
    """

    name: str
    heading: str
    value: str
    help: str
    words: str
    written: str
    is_switch: bool = False

    def matches(self, query: str) -> bool:
        """Whether each word of the query begins a word of the name, the words for it or the sentence."""
        text = f"{self.name} {self.name.replace('_', ' ')} {self.words} {self.help} {self.heading}"
        known = text.lower().replace(",", " ").replace("-", " ").split()
        wanted = query.lower().replace("_", " ").replace("-", " ").split()
        return bool(wanted) and all(
            any(one.strip("().:;'\"").startswith(word) for one in known) for word in wanted
        )

    def is_named(self, query: str) -> bool:
        """Whether each word of the query begins a word of the name, or of the words for it."""
        known = f"{self.name.replace('_', ' ')} {self.words}".lower().split()
        wanted = query.lower().replace("_", " ").replace("-", " ").split()
        return bool(wanted) and all(any(one.startswith(word) for one in known) for word in wanted)
