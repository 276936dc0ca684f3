"""The list of all settings: their values, what they are, and how each is set."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.settings.shown_setting import ShownSetting
from app.text.safe_text import safe_line
from app.tui.textual_workarounds.paged_options import PagedOptions
from app.tui.view.content import to_content
from app.tui.view.spans import Line, Span, fit
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines

_NAME_CELLS = 28
_VALUE_CELLS = 26


def build_setting(setting: ShownSetting) -> Line:
    """The name of a setting and its value."""
    value = fit(safe_line(setting.value), _VALUE_CELLS) or "not set"
    return (
        Span(fit(setting.name, _NAME_CELLS).ljust(_NAME_CELLS + 1), "$accent"),
        Span(value.ljust(_VALUE_CELLS + 1), "$foreground" if setting.value else "$faint"),
        Span(setting.heading, "$faint"),
    )


def build_note(setting: ShownSetting) -> list[Line]:
    """What a setting is, and how it is set."""
    how = f"At the next start: {setting.written}"
    if setting.is_switch:
        how += f" or --no-{setting.written.removeprefix('--')}, or {setting.name} in pravaha.toml."
    elif setting.written.startswith("--"):
        how += f" VALUE, or {setting.name} = VALUE in pravaha.toml."
    else:
        how += " in pravaha.toml."
    return [(), (Span(setting.help, "$foreground"),), (Span(how, "$muted"),)]


class SettingsScreen(Dialog[None]):
    """The dialog.

    Args:
        settings: all of them.
        name: the setting to begin at; empty for the first one.
    """

    BINDINGS: ClassVar = [
        ("escape", "dismiss", "close"),
        ("j", "move(1)", "next"),
        ("k", "move(-1)", "previous"),
    ]

    def __init__(self, settings: Sequence[ShownSetting], name: str = "") -> None:
        super().__init__()
        self._settings = {one.name: one for one in settings}
        self._name = name

    def compose(self) -> ComposeResult:
        """The list, and what the highlighted setting is."""
        with Vertical(id="settings-box") as box:
            box.border_title = "Settings"
            box.border_subtitle = "esc closes"
            options = [
                Option(to_content([build_setting(one)]), id=name)
                for name, one in self._settings.items()
            ]
            yield PagedOptions(*options, id="settings-list", compact=True, markup=False)
            yield Lines(id="settings-note")

    def on_mount(self) -> None:
        """Begin at the setting."""
        options = self.query_one(OptionList)
        names = list(self._settings)
        options.highlighted = names.index(self._name) if self._name in names else 0
        options.focus()

    def action_move(self, by: int) -> None:
        """The next or the previous setting."""
        options = self.query_one(OptionList)
        options.action_cursor_down() if by > 0 else options.action_cursor_up()

    @on(OptionList.OptionHighlighted)
    def _explain(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.query_one("#settings-note", Lines).show_lines(
            build_note(self._settings[event.option.id or ""])
        )
