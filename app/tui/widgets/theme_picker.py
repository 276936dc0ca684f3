"""The theme list with live preview. Themes with errors are listed with their errors."""

from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.tui.textual_workarounds.paged_options import PagedOptions
from app.tui.themes import ThemeFile
from app.tui.view.content import to_content
from app.tui.view.spans import Span
from app.tui.widgets.dialog import Dialog


class ThemePicker(Dialog[str | None]):
    """Dismisses with the chosen name, or with None after restoring the previous theme."""

    BINDINGS: ClassVar = [("escape", "restore", "back")]

    def __init__(self, themes: Mapping[str, ThemeFile], current: str) -> None:
        super().__init__()
        self._themes = themes
        self._before = current

    def compose(self) -> ComposeResult:
        """The list over a transparent screen, so that the preview is visible."""
        with Vertical(id="theme-box") as box:
            box.border_title = "Theme"
            box.border_subtitle = "enter keeps, esc restores"
            names = max(map(len, self._themes), default=0)
            options = [_option(theme, names) for theme in self._themes.values()]
            yield PagedOptions(*options, id="theme-list", compact=True)

    def on_mount(self) -> None:
        """Highlight the current theme."""
        names = list(self._themes)
        options = self.query_one(OptionList)
        options.highlighted = names.index(self._before) if self._before in names else None
        options.focus()

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        if event.option.id is not None and self._themes[event.option.id].theme is not None:
            self.app.theme = event.option.id

    @on(OptionList.OptionSelected)
    def _keep(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def action_restore(self) -> None:
        """Restore the previous theme."""
        self.app.theme = self._before
        self.dismiss(None)


def _option(theme: ThemeFile, name_cells: int) -> Option:
    if theme.problems:
        why = f"{theme.name} is disabled: {'; '.join(theme.problems)}"
        return Option(to_content([(Span(why),)]), id=theme.name, disabled=True)
    line = (Span(theme.name.ljust(name_cells + 2), "bold"), Span(theme.title, "$muted"))
    return Option(to_content([line]), id=theme.name)
