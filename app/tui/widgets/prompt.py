"""The prompt, a multi-line editor: enter sends; ctrl+j, shift+enter or backslash-enter break the line."""

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import TextArea

from app.tui.keys import PROMPT_KEYS, bindings
from app.tui.slash import matches
from app.tui.textual_workarounds.legacy_shift_enter import LEGACY_SHIFT_ENTER


class Prompt(TextArea):
    """Editor of the next message. Up in the first line and down in the last one browse the history."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(PROMPT_KEYS)

    class Submitted(Message):
        """Enter was pressed on a prompt that is not blank."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(
            id=id,
            soft_wrap=True,
            show_line_numbers=False,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder="Ask anything: enter sends, ctrl+j breaks the line, / commands",
        )
        # A blinking cursor would write to the terminal while the screen is idle.
        self.cursor_blink = False
        self._history: list[str] = []
        self._at: int | None = None
        self._draft = ""

    def set_history(self, prompts: list[str]) -> None:
        """Earlier prompts, oldest first."""
        self._history = prompts
        self._at = None

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            # TextArea would insert a newline before the bindings are checked.
            event.prevent_default()
        elif event.key == LEGACY_SHIFT_ENTER:
            event.stop()
            event.prevent_default()
            self.action_newline()
        else:
            await super()._on_key(event)

    def action_send(self) -> None:
        """Send, or break the line if the character before the cursor is a backslash."""
        row, column = self.cursor_location
        if column and self.document[row][column - 1] == "\\":
            self.delete((row, column - 1), (row, column))
            self.action_newline()
            return
        text = self.text
        if not text.strip():
            return
        self.text = ""
        self._at = None
        self.post_message(self.Submitted(text))

    def action_newline(self) -> None:
        """Break the line at the cursor."""
        self.insert("\n")

    def action_history_up(self) -> None:
        """Move up; in the first line, show the previous prompt of the history."""
        if not self.cursor_at_first_line or not self._history:
            self.action_cursor_up()
            return
        if self._at is None:
            self._draft, self._at = self.text, len(self._history)
        if self._at > 0:
            self._at -= 1
            self._replace(self._history[self._at])

    def action_history_down(self) -> None:
        """Move down; in the last line, show the next prompt of the history, finally the draft."""
        if not self.cursor_at_last_line or self._at is None:
            self.action_cursor_down()
            return
        self._at += 1
        if self._at >= len(self._history):
            self._at = None
            self._replace(self._draft)
        else:
            self._replace(self._history[self._at])

    def action_complete(self) -> None:
        """Complete a slash command to its name, or to the common prefix of several."""
        found = matches(self.text)
        if not found:
            return
        names = [command.name for command in found]
        common = names[0]
        for name in names[1:]:
            while not name.startswith(common):
                common = common[:-1]
        done = len(names) == 1
        self._replace(f"/{common}" + (" " if done and found[0].argument else ""))

    def insert_unsent(self, text: str) -> None:
        """Insert the text of a message that was not sent before the current text."""
        self._replace(f"{text}\n{self.text}" if self.text.strip() else text)

    def _replace(self, text: str) -> None:
        self.text = text
        self.move_cursor(self.document.end)
