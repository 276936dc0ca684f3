"""The themes: which there are, and choosing one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.app import App

from app.slash.names import did_you_mean, meant, near_names
from app.tui.chat_screen import ChatScreen
from app.tui.themes import BUILT_IN, DEFAULT, ThemeFile, load_themes
from app.tui.widgets.theme_picker import ThemePicker


class ThemeActions:
    """Registers the themes with the app.

    Args:
        app: draws with the theme.
        folder: the user's own themes, which override ours; None for none.
        true_colors: whether the terminal shows 24-bit colours; otherwise themes use their 256-colour roles.
        on_theme: called with the name of a theme that was chosen, to save it.
    """

    def __init__(
        self,
        app: App[Any],
        screen: ChatScreen,
        *,
        folder: Path | None,
        true_colors: bool,
        on_theme: Callable[[str], None],
    ) -> None:
        self._app = app
        self._screen = screen
        self._on_theme = on_theme
        self.files: dict[str, ThemeFile] = load_themes([BUILT_IN, *([folder] if folder else [])])
        # The stylesheet refers to our theme variables: register a theme before it is parsed.
        for found in self.files.values():
            palette = found.theme if true_colors else found.theme_256
            if palette is not None:
                app.register_theme(palette)
        app.theme = DEFAULT

    def start(self, name: str) -> None:
        """Show the theme of the start, and report the files that are disabled."""
        for file, found in self.files.items():
            if found.problems:
                self._screen.notify_safely(
                    f"Theme {file} is disabled: {'; '.join(found.problems)}.", "warning"
                )
        self._show(name)

    def choose(self) -> None:
        """Open the theme list with live preview."""

        def chosen(name: str | None) -> None:
            if name is not None:
                self._on_theme(name)

        self._screen.open_dialog(ThemePicker(self.files, self._app.theme), chosen)

    def use(self, name: str) -> None:
        """Switch to a theme by its name, or the beginning of only one, and save the choice.

        Raises:
            InvalidRequest: there is none; the sentence names those that are near.
        """
        usable = [one for one, found in self.files.items() if found.theme is not None]
        name = meant(name, usable, "theme")
        if self._show(name):
            self._on_theme(name)

    def _show(self, name: str) -> bool:
        """Switch to a theme; False after a notification if there is none of that name."""
        found = self.files.get(name)
        if found is not None and found.theme is not None:
            self._app.theme = name
            return True
        hint = did_you_mean(near_names(name, self.files))
        self._screen.notify_safely(f"There is no theme {name}. {hint}".rstrip(), "warning")
        return False
