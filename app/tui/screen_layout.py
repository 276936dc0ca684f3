"""`ScreenLayout`: which pane is open, whether the left column lies over the messages, and what has the focus.

The stylesheet shows and hides widgets by the classes that are set here on the main screen.
"""

from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from app.tui.panes import CHAT, PANES
from app.tui.widgets.conversations import Conversations
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.status_bar import MIN_COLUMNS, MIN_ROWS
from app.tui.widgets.transcript import MessageScroll


class ScreenLayout:
    """The layout of the main screen.

    Args:
        app: shows the main screen.
        draw_all: draws everything at the next tick; called after each change.
    """

    def __init__(self, app: App[Any], draw_all: Callable[[], None]) -> None:
        self._app = app
        self._draw_all = draw_all
        self._pane = CHAT
        self._maximised = False
        self._typed_before = True
        """Whether letters went into a text field when the pane was opened."""
        self._focused_before: Widget | None = None
        """What had the focus before the terminal became too small."""

    @property
    def _main(self) -> Screen[Any]:
        return self._app.screen_stack[0]

    # Panes.

    @property
    def pane(self) -> str:
        """The pane that is open: a key of `PANES`, or `CHAT` for none."""
        return self._pane

    @property
    def maximised(self) -> bool:
        """Whether the pane has the whole screen."""
        return self._maximised

    def open_pane(self, name: str) -> None:
        """Show and focus a pane; a second call maximises it, a third restores the chat."""
        if name == CHAT:
            self.show_messages()
            self.focus_prompt()
            return
        if self._pane == name and self._maximised:
            self.restore_chat()
            return
        if self._pane == CHAT:
            self._typed_before = self.typing
        beside = PANES[name].place == "center" or self._app.screen.has_class("-wide")
        self._maximise(self._pane == name or not beside)
        self._show_pane(name)
        self._app.call_after_refresh(lambda: self._main.query_one(PANES[name].focus).focus())

    def restore_chat(self) -> None:
        """Show the chat in place of a pane, in the keyboard mode in which the pane was opened."""
        self.open_pane(CHAT)
        if not self._typed_before:
            self.focus_messages()

    def show_messages(self) -> None:
        """Close the pane. The focus stays."""
        self._show_pane(CHAT)
        self._maximise(False)

    def uncover_messages(self) -> None:
        """Close a pane that lies in place of the messages, unless it is maximised."""
        if self._pane in PANES and PANES[self._pane].place == "center" and not self._maximised:
            self._show_pane(CHAT)

    def _show_pane(self, name: str) -> None:
        if name == self._pane:
            return
        old, self._pane = self._pane, name
        main = self._main
        main.remove_class(f"-pane-{old}").add_class(f"-pane-{name}")
        main.set_class(name in PANES and PANES[name].place == "center", "-center-open")
        for pane in main.query(".center-pane"):
            pane.set_class(pane.id == name, "-open")
        self._changed()

    def _maximise(self, maximised: bool) -> None:
        if maximised is not self._maximised:
            self._maximised = maximised
            self._app.screen.set_class(maximised, "-maximised")
            self._changed()

    def _changed(self) -> None:
        self._draw_all()
        self._app.refresh()

    # The left column.

    @property
    def overlaid(self) -> bool:
        """Whether the left column is over the messages."""
        return self._main.has_class("-list") and not self._wide_enough_for_list

    def show_left_column(self) -> None:
        """Show the conversations and branches, over the messages if there is no room beside them."""
        self._main.add_class("-list").remove_class("-hide-list")
        self._maximise(False)

    def hide_left_column(self) -> None:
        """Hide the left column, if it is over the messages."""
        self._main.remove_class("-list")

    def close_overlay(self) -> bool:
        """Hide the left column if it is over the messages; whether it was."""
        was_over = self.overlaid
        self.hide_left_column()
        return was_over

    def show_list(self, query: str = "") -> None:
        """Show and focus the conversation list, filtered by `query`."""
        self.show_left_column()
        chats = self._main.query_one(Conversations)
        if query:
            self._main.query_one("#chat-filter", Input).value = query
        self._app.call_after_refresh(chats.options.focus)

    @property
    def _wide_enough_for_list(self) -> bool:
        screen = self._app.screen
        return screen.has_class("-medium") or screen.has_class("-wide")

    # The focus.

    @property
    def typing(self) -> bool:
        """Whether letters go into a text field of the main screen, also while a dialog is over it."""
        return isinstance(self._main.focused, TextArea | Input)

    def focus_prompt(self) -> None:
        """Focus the prompt."""
        self._main.query_one(Prompt).focus()

    def focus_messages(self) -> None:
        """Focus the messages."""
        self._main.query_one(MessageScroll).focus()

    def scroll_messages(self, pages: int) -> None:
        """Scroll the messages by pages, whichever widget has the focus."""
        messages = self._main.query_one(MessageScroll)
        (messages.scroll_page_down if pages > 0 else messages.scroll_page_up)(animate=False)

    def focus_moved(self) -> None:
        """Another widget has the focus: the left column is over the messages only while it is there."""
        main = self._main
        if main.focused is not None and not main.query_one("#left").has_focus_within:
            main.remove_class("-list")
        self._draw_all()

    # The size.

    def resized(self, size: Size) -> None:
        """Show a message if the terminal is too small."""
        main = self._main
        too_small = size.width < MIN_COLUMNS or size.height < MIN_ROWS
        if too_small is not main.has_class("-hopeless"):
            # What is hidden loses the focus: keys would have other meanings afterwards.
            if too_small:
                self._focused_before = main.focused
            elif self._focused_before is not None:
                self._app.call_after_refresh(self._focused_before.focus)
        main.set_class(too_small, "-hopeless")
