"""The line-mode chat: reads a line, prints the answer as it is generated, reads the next line.

Writes only text and newlines: no cursor movement, boxes, colours or escape sequences. Model output
passes through `SafeStream`, which removes escape sequences.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from app.plain.commands import Command, Message, Unknown, help_lines, read_line
from app.text.safe_text import SafeStream, safe_line, safe_text
from engine.api.errors import PravahaError
from engine.clients.engine_client import EngineClient
from engine.conversations.answer import REPETITION
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind, NodeStatus, NodeView, TreeSummary

_WAKE_S = 0.5
"""Maximum time between two looks at the session, in case a wake-up is missed."""


class PlainChat:
    """The loop and its commands.

    Args:
        session: the conversations.
        client: the engine, for figures and wake-ups.
        read: shows the prompt and returns the next line without its newline; raises EOFError at the end.
        out: the stream that answers are written to.
        show_prompts: whether input is interactive: then prompts and remarks are printed.
    """

    def __init__(
        self,
        session: TreeSession,
        client: EngineClient,
        *,
        read: Callable[[str], str],
        out: TextIO,
        show_prompts: bool,
    ) -> None:
        self._session = session
        self._client = client
        self._read = read
        self._out = out
        self._show_prompts = show_prompts
        self._wake = threading.Event()
        self._listed: list[TreeSummary] = []
        self._failed = False
        client.on_wake(self._wake.set)

    def run(self) -> bool:
        """Chat until `/quit` or the end of input; False if a message or command failed."""
        if self._show_prompts:
            self._say("Pravāha, plain chat. /help lists commands, /quit quits.")
            if self._session.path():
                self._say(f"Conversation: {safe_line(self._session.title)} (/history prints it)")
        while True:
            self._notice()
            try:
                line = self._read_message()
            except EOFError:
                return not self._failed
            try:
                if not self._execute(line):
                    return not self._failed
            except PravahaError as error:
                self._fail(str(error))

    def stop(self) -> None:
        """Stop the running answer. For a signal handler."""
        self._session.stop()
        self._wake.set()

    def _read_message(self) -> str:
        """A line together with its continuation lines."""
        line = self._read("You: " if self._show_prompts else "")
        while line.endswith("\\"):
            line = line[:-1] + "\n" + self._read("...: " if self._show_prompts else "")
        return line

    def _execute(self, line: str) -> bool:
        """Send a message or run a command; False to quit."""
        match read_line(line):
            case Unknown(sentence):
                self._fail(sentence)
            case Message(text):
                if text.strip():
                    self._session.send(text)
                    self._print_answer()
            case Command("quit", _):
                return False
            case Command(name, argument):
                _COMMANDS[name](self, argument)
        return True

    def _print_answer(self) -> None:
        """Print the running answer until it finishes."""
        safe = SafeStream()
        if self._show_prompts:
            self._write("Pravāha: ")
        last = None
        while self._session.generating:
            deltas = self._session.pump()
            for delta in deltas:
                self._write(safe.feed(delta.text))
                last = delta
            if self._session.generating and not deltas:
                self._wake.wait(_WAKE_S)
                self._wake.clear()
        self._write(safe.flush() + "\n")
        if last is not None and last.status is NodeStatus.ERROR:
            self._fail(last.error or "The answer failed.")
        elif last is not None and last.finish == REPETITION:
            self._say("(stopped: repetition; /regen to retry)")
        elif last is not None and last.status is NodeStatus.STOPPED and self._show_prompts:
            self._say("(stopped; the text so far is kept)")

    # Commands.

    def _new(self, _: str) -> None:
        self._session.new_tree()
        self._say("A new conversation.")

    def _trees(self, query: str) -> None:
        self._listed = self._session.trees(query)
        if not self._listed:
            self._say("No conversations." if not query else "No conversation contains that.")
        for number, tree in enumerate(self._listed, start=1):
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(tree.updated_at))
            here = ", open" if tree.id == self._session.tree_id else ""
            self._say(f"{number}. {safe_line(tree.title)} ({tree.messages} messages, {when}{here})")

    def _open(self, argument: str) -> None:
        if not self._listed:
            self._listed = self._session.trees()
        number = int(argument) if argument.isdecimal() else 0
        if not 1 <= number <= len(self._listed):
            self._fail(f"/open takes a number from 1 to {len(self._listed)}: see /trees.")
            return
        self._session.open_tree(self._listed[number - 1].id)
        self._say(f"Conversation: {safe_line(self._session.title)}")

    def _history(self, _: str) -> None:
        path = self._session.path()
        if not path:
            self._say("This conversation is empty.")
        for node in path:
            self._say(
                f"{_ROLE.get(node.kind, node.kind.value)}: {safe_text(node.text)}{_status_remark(node)}"
            )

    def _system(self, argument: str) -> None:
        if argument:
            self._session.system_prompt = None if argument == "-" else argument
        prompt = self._session.system_prompt
        self._say(
            "There is no system prompt." if prompt is None else f"System: {safe_text(prompt)}"
        )

    def _regen(self, _: str) -> None:
        self._session.regenerate()
        self._print_answer()

    def _undo(self, _: str) -> None:
        name = self._session.undo()
        self._say("Nothing to undo." if name is None else f"Undone: {name}.")

    def _redo(self, _: str) -> None:
        name = self._session.redo()
        self._say("Nothing to redo." if name is None else f"Redone: {name}.")

    def _rename(self, title: str) -> None:
        if not title:
            self._fail("/rename takes the new title.")
            return
        self._session.rename_tree(self._session.tree_id, title)
        self._say(f"Conversation: {safe_line(self._session.title)}")

    def _delete(self, _: str) -> None:
        title = self._session.title
        self._session.delete_tree(self._session.tree_id)
        self._say(f"Archived: {safe_line(title)}")

    def _export(self, argument: str) -> None:
        if not argument:
            self._fail("/export takes the name of the file to write.")
            return
        path = Path(argument).expanduser()
        try:
            # "x": an export never overwrites a file.
            with path.open("x", encoding="utf-8") as file:
                count = sum(1 for line in self._session.export() if file.write(line + "\n"))
        except OSError as error:
            self._fail(f"{path} can't be written: {error.strerror}.")
        else:
            self._say(f"{count} nodes written to {path}")

    def _stats(self, _: str) -> None:
        snapshot = self._client.snapshot()
        model, rates, blocks = snapshot.model, snapshot.rates, snapshot.blocks
        if model is None:
            self._say(f"Engine: {snapshot.state.value}")
            return
        self._say(
            f"Model: {safe_line(model.name)}, {model.weight_format}, {model.executor}/"
            f"{model.dispatch}, {model.threads} threads"
        )
        self._say(f"Context: {self._session.context_used()} of {model.context_length} tokens")
        self._say(f"KV blocks: {blocks.active} of {blocks.total} in use")
        self._say(f"Decoding: {rates.decode_tokens_per_second:.1f} tokens/s in the last seconds")

    def _help(self, _: str) -> None:
        for line in help_lines():
            self._say(line)

    # Output.

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _say(self, line: str) -> None:
        self._write(line + "\n")

    def _fail(self, sentence: str) -> None:
        self._failed = True
        self._say(f"Error: {safe_text(sentence)}")

    def _notice(self) -> None:
        notice = self._session.take_notice()
        if notice is not None:
            self._say(f"Note: {safe_text(notice)}")


_ROLE = {NodeKind.USER: "You", NodeKind.ASSISTANT: "Pravāha", NodeKind.SYSTEM: "System"}

_COMMANDS: dict[str, Callable[[PlainChat, str], None]] = {
    "new": PlainChat._new,
    "trees": PlainChat._trees,
    "open": PlainChat._open,
    "history": PlainChat._history,
    "system": PlainChat._system,
    "regen": PlainChat._regen,
    "undo": PlainChat._undo,
    "redo": PlainChat._redo,
    "rename": PlainChat._rename,
    "delete": PlainChat._delete,
    "export": PlainChat._export,
    "stats": PlainChat._stats,
    "help": PlainChat._help,
}


def _status_remark(node: NodeView) -> str:
    """A remark on an answer that was stopped or failed; otherwise empty."""
    if node.status is NodeStatus.STOPPED:
        return " (stopped)"
    if node.status is NodeStatus.ERROR:
        return f" (failed: {safe_line(node.error or '')})"
    return ""
