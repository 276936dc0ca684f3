"""`Dialog`: base of the modal screens. It dismisses at most once, and only while it is on top."""

from typing import Generic, TypeVar, cast

from textual import on
from textual.await_complete import AwaitComplete
from textual.command import Command, CommandList
from textual.screen import ModalScreen, Screen
from textual.widgets import OptionList

from app.tui.textual_workarounds.closed_screen import NotifiesOfSelectionAtOnce, SearchesWhileOpen
from app.tui.textual_workarounds.paged_options import has_rows
from app.tui.textual_workarounds.removed_under_pointer import RemovedUnderPointer
from app.tui.theme_choice import ThemeChoice

T = TypeVar("T")


class DismissedOnce(Generic[T]):
    """Mixin of screens that ignore answers after the first one.

    A double click, or `enter` twice before the screen is gone, would otherwise close the screen below.
    """

    _dismissed = False

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Close with a result; no effect if it is closing already or below another screen."""
        screen = cast("Screen[T]", self)
        if self._dismissed or screen.app.screen is not screen:
            return AwaitComplete()
        self._dismissed = True
        closed: AwaitComplete = super().dismiss(result)  # type: ignore[misc]  # mixed into screens
        return closed


class Dialog(DismissedOnce[T], RemovedUnderPointer, NotifiesOfSelectionAtOnce, ModalScreen[T]):
    """A modal screen of ours."""


class Palette(
    DismissedOnce[None], RemovedUnderPointer, NotifiesOfSelectionAtOnce, SearchesWhileOpen
):
    """Textual's command palette, with a preview of the theme whose entry is highlighted."""

    _previewed: str | None = None
    """The theme that is shown because its entry is highlighted."""
    _theme_before = ""

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        choice = event.option.hit.command if isinstance(event.option, Command) else None
        name = choice.name if isinstance(choice, ThemeChoice) else None
        # Results of a search may arrive when another dialog is on top, with a preview of its own.
        if name == self._previewed or not self.is_current:
            return
        if self._previewed is None:
            self._theme_before = self.app.theme
        self._previewed = name
        self.app.theme = self._theme_before if name is None else name

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close; the theme from before a preview returns, unless it was chosen."""
        chosen = None if self._selected_command is None else self._selected_command.command
        if self._previewed is not None and not isinstance(chosen, ThemeChoice):
            self._previewed, self.app.theme = None, self._theme_before
        return super().dismiss(result)

    def _action_command_list(self, action: str) -> None:
        if has_rows(self.query_one(CommandList)):
            super()._action_command_list(action)
