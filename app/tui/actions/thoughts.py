"""The reasoning of answers: shown or folded, ended, and how much of it is asked for."""

from collections.abc import Mapping

from app.tui.chat_screen import ChatScreen
from app.tui.glyphs import Glyphs
from app.tui.keys import hint
from app.tui.selection import Selection
from app.tui.view.spans import Line
from app.tui.view.thought import build_thought
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest
from engine.conversations.thinking import read_thinking
from engine.conversations.tree import NodeView


class ThoughtActions:
    """Acts on the reasoning of the selected answer, else of the last one that has any."""

    def __init__(
        self, screen: ChatScreen, selection: Selection, glyphs: Glyphs, keymap: Mapping[str, str]
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._glyphs = glyphs
        self._fold_key = hint("thought.fold", "", keymap)[0]
        self._end_key = hint("thought.end", "", keymap)[0]
        self._unfolded: set[str] = set()

    def row(self, node: NodeView) -> tuple[Line, bool]:
        """The row of an answer's reasoning, empty without any, and whether its text is shown below."""
        shown = node.id in self._unfolded
        line = build_thought(
            node,
            self._glyphs,
            shown=shown,
            fold=(self._fold_key, f"app.perform_later('thoughts','fold',{node.id!r})"),
            end=(self._end_key, "app.perform_later('thoughts','end')"),
        )
        return line, shown

    def fold(self, node_id: str | None = None) -> None:
        """Show the reasoning of an answer, or fold it.

        Raises:
            InvalidRequest: it has none.
        """
        chosen = node_id or self._selection.node_id
        thoughtful = [node.id for node in self._screen.session.path() if node.n_reasoning]
        if chosen is None and thoughtful:
            chosen = thoughtful[-1]
        if chosen not in thoughtful:
            raise InvalidRequest("The answer has no reasoning to show.")
        self._unfolded ^= {chosen}
        self._screen.main.query_one(Transcript).show_thought(chosen)

    def end(self) -> None:
        """Have a model that thinks answer now: the answer at the end of the open branch.

        Raises:
            InvalidRequest: it does not think, or the engine is a server, which is not told.
        """
        if not self._screen.session.answers.end_reasoning():
            raise InvalidRequest("No answer of the open branch is thinking.")

    def run(self, argument: str) -> None:
        """`/think`: end it, or say how much of it is asked for from the next answer on.

        Raises:
            InvalidRequest: the argument is none of what it may be, or as `end`.
        """
        answers = self._screen.session.answers
        if argument == "end":
            self.end()
            return
        answers.thinking = read_thinking(argument, answers.thinking)
        self._screen.notify_safely(
            f"Thinking: {answers.thinking}. It applies to models that think."
        )
