"""The prompt, a multi-line editor: enter sends; ctrl+j, shift+enter or backslash-enter break the line."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.strip import Strip

from app.slash.completion import Completion
from app.tui.keys import PROMPT_KEYS, bindings
from app.tui.textual_workarounds.undo_with_scrollbar import UndoWithScrollbar


@dataclass(frozen=True, slots=True)
class _Cycle:
    """The candidates that tab writes one after the other.

    Attributes:
        texts: the candidates.
        at: which of them is written; -1 before the first.
        written: what stands before the cursor in the candidates' place.
        after: the text before the cursor; after any other key it is another one.
    """

    texts: tuple[str, ...]
    at: int
    written: str
    after: str


class Prompt(UndoWithScrollbar):
    """Editor of the next message. Up in the first row and down in the last one browse the history.

    Args:
        complete: returns what completes the text before the cursor.
        reading: whether more may complete it soon.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(PROMPT_KEYS)

    class Submitted(Message):
        """Enter was pressed on a prompt that is not blank.

        Attributes:
            editing: the node whose text this is instead, or None for a new message.
        """

        def __init__(self, text: str, editing: str | None = None) -> None:
            super().__init__()
            self.text = text
            self.editing = editing

    def __init__(
        self,
        *,
        complete: Callable[[str], Completion | None] = lambda before: None,
        reading: Callable[[], bool] = lambda: False,
        id: str | None = None,  # noqa: A002
    ) -> None:
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
        self._completes = complete
        self._reads_names = reading
        self._tab_at: str | None = None
        """The text before the cursor at which tab waits for names that are being read."""
        self._cycle: _Cycle | None = None
        self._draft_size = ""
        self._history: list[str] = []
        self._at: int | None = None
        self._draft = ""
        self._editing: str | None = None
        self._unsent = ""

    @property
    def editing(self) -> str | None:
        """The node whose text is edited, or None for a new message."""
        return self._editing

    def begin_edit(self, node_id: str, text: str, what: str) -> None:
        """Edit a node's text; the current text is kept for afterwards.

        Args:
            what: `message` or `answer`.
        """
        if self._editing is None:
            self._unsent = self.text
        self._editing = node_id
        self.border_title = f"editing the {what}"
        self.border_subtitle = "enter adds it beside the old one, esc leaves"
        self.add_class("-editing")
        self._replace(text)

    def end_edit(self) -> None:
        """Show the text again that was there before the editing."""
        if self._editing is not None:
            self._leave_edit()
            self._replace(self._unsent)

    def _leave_edit(self) -> None:
        self._editing = None
        self.border_title, self.border_subtitle = None, self._draft_size or None
        self.remove_class("-editing")

    def show_size(self, size: str, *, too_large: bool = False) -> None:
        """Show how much the draft takes in the border, unless a message is edited or held."""
        self._draft_size = size
        self.set_class(too_large, "-too-large")
        if not self.has_class("-editing") and (self.border_subtitle or "") != size:
            self.border_subtitle = size or None

    @property
    def before_cursor(self) -> str:
        """The text before the cursor."""
        return self.get_text_range((0, 0), self.cursor_location)

    def hold(self, text: str, why: str) -> None:
        """Show a message that is sent as soon as something is done, and what that is; see `release`."""
        self._at = None
        self._replace(text)
        # Content, since a name of a file may look like markup.
        self.border_title = Content(why)
        self.border_subtitle = "then it is sent; esc leaves it here"
        self.add_class("-editing")

    def release(self) -> None:
        """The message is not held any more; its text stays."""
        if self._editing is None:
            self._leave_edit()

    def set_history(self, prompts: list[str]) -> None:
        """Earlier prompts, oldest first."""
        self._history = prompts
        self._at = None

    def render_line(self, y: int) -> Strip:
        """A row; an empty one if there is no room, for which Textual 8.2.8 cannot wrap the placeholder."""
        return super().render_line(y) if self.content_size.width else Strip.blank(0)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            # TextArea would insert a newline before the bindings are checked.
            event.prevent_default()
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
        editing, self._at = self._editing, None
        self.text = ""
        self.end_edit()
        self.post_message(self.Submitted(text, editing))

    async def action_undo_or_suspend(self) -> None:
        """Undo the last edit; with nothing to undo, suspend the process."""
        if self.history.undo_stack:
            self.undo()
        else:
            await self.run_action("app.suspend_process")

    def action_newline(self) -> None:
        """Break the line at the cursor."""
        self.insert("\n")

    def action_clear_draft(self) -> None:
        """Clear the text; undo brings it back."""
        self._at = None
        self.clear()

    def action_history_up(self) -> None:
        """Move up; in the first row, show the previous prompt of the history."""
        first = self.navigator.is_first_wrapped_line(self.cursor_location)
        if not first or not self._history:
            self.action_cursor_up()
            return
        if self._at is None:
            self._draft, self._at = self.text, len(self._history)
        while self._at > 0:
            self._at -= 1
            if self._history[self._at] != self.text:  # else the key would seem to do nothing
                self._replace(self._history[self._at])
                return

    def action_history_down(self) -> None:
        """Move down; in the last row, show the next prompt of the history, finally the draft."""
        last = self.navigator.is_last_wrapped_line(self.cursor_location)
        if not last or self._at is None:
            self.action_cursor_down()
            return
        self._at += 1
        if self._at >= len(self._history):
            self._at = None
            self._replace(self._draft)
        else:
            self._replace(self._history[self._at])

    def action_complete(self) -> None:
        """Complete the word before the cursor, as far as all candidates agree; again: one after the other."""
        before = self.before_cursor
        if self._cycle is not None and before == self._cycle.after:
            self._write_candidate(before, self._cycle)
            return
        self._cycle = None
        found = self._completes(before)
        if found is None and self._reads_names():
            self._tab_at = before
        elif found is not None:
            self._write_completion(before, found)

    def names_arrived(self, found: Completion | None) -> None:
        """More names are known: complete what tab was pressed for, unless the text is another one now."""
        if self._tab_at is None or (found is None and self._reads_names()):
            return
        before, self._tab_at = self._tab_at, None
        if found is not None and before == self.before_cursor:
            self._write_completion(before, found)

    def _write_completion(self, before: str, found: Completion) -> None:
        if found.common != found.typed:
            self._replace_before(before, found.typed, found.common)
        else:
            texts = tuple(one.text for one in found.candidates)
            self._write_candidate(before, _Cycle(texts, -1, found.typed, before))

    def _write_candidate(self, before: str, cycle: _Cycle) -> None:
        """Write the next candidate in place of the last one."""
        at = (cycle.at + 1) % len(cycle.texts)
        self._replace_before(before, cycle.written, cycle.texts[at])
        self._cycle = _Cycle(cycle.texts, at, cycle.texts[at], self.before_cursor)

    def _replace_before(self, before: str, old: str, new: str) -> None:
        """Replace the word before the cursor."""
        row, column = self.cursor_location
        start = column - len(old)
        if start >= 0 and before.endswith(old):
            self.replace(new, (row, start), (row, column))

    def show_draft(self, text: str) -> None:
        """Show the unsent text of the conversation that was opened."""
        self._leave_edit()
        if text != self.text:
            self._replace(text)

    def insert_unsent(self, text: str, *, replace: bool = False) -> None:
        """Insert the text of a message that was not sent before the current text, or in its place."""
        self._replace(f"{text}\n{self.text}" if self.text.strip() and not replace else text)

    def _replace(self, text: str) -> None:
        self.text = text
        self.move_cursor(self.document.end)
