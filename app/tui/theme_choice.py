"""`ThemeChoice`: the entry of a theme in the command palette, which the palette previews."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThemeChoice:
    """Calling it chooses the theme.

    Attributes:
        name: the theme.
        choose: switches to it for good.
    """

    name: str
    choose: Callable[[str], None]

    def __call__(self) -> None:
        """Choose it."""
        self.choose(self.name)
