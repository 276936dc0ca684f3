"""Text in and out: attached files, an outside editor or pager, what is copied, and exports."""

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from textual.app import SuspendNotSupported

from app.slash.attachments import mention
from app.slash.files import export_to_file
from app.slash.mentions import near_files
from app.slash.names import did_you_mean
from app.slash.token_count import count_tokens
from app.text.safe_text import safe_line, safe_text
from app.tui.actions.guarded import guarded
from app.tui.chat_screen import ChatScreen
from app.tui.markdown_parser import make_parser
from app.tui.selection import EMPTY, Selection
from app.tui.terminal import Terminal
from app.tui.widgets.ask_text import AskText
from app.tui.widgets.choice import Choice, ChoiceScreen
from app.tui.widgets.prompt import Prompt
from engine.api.errors import InvalidRequest
from engine.conversations.export import export_markdown
from engine.conversations.tree import NodeKind

_DIGITS = 9
_TAKE_LINES = frozenset(
    {"vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "micro", "kak", "joe"}
)
"""Editors that begin at line N with the argument `+N`."""


class FileActions:
    """Keys and commands for files, the editor and copying."""

    def __init__(self, screen: ChatScreen, selection: Selection, terminal: Terminal) -> None:
        self._screen = screen
        self._selection = selection
        self._terminal = terminal

    @property
    def length(self) -> int:
        """The context length; 0 while no model is loaded."""
        model = self._screen.client.snapshot().model
        return model.context_length if model else 0

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text, while a model is loaded; see `count_tokens`. For any thread."""
        return count_tokens(self._screen.client, text)

    async def attach(self, name: str) -> None:
        """Name a file in the prompt.

        Raises:
            InvalidRequest: there is none; the sentence names those that are near.
        """
        name = name.strip("\"'")
        if not await asyncio.to_thread(_is_file, name):
            hint = did_you_mean(await asyncio.to_thread(near_files, name))
            raise InvalidRequest(f"There is no file {name}. {hint}".rstrip())
        prompt = self._screen.main.query_one(Prompt)
        prompt.insert_unsent(f"{mention(name)} {prompt.text}".rstrip() + " ", replace=True)
        prompt.focus()

    def edit(self) -> None:
        """Edit the prompt in $VISUAL or $EDITOR."""
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not command:
            raise InvalidRequest(
                "No editor is set: set EDITOR, or type here (ctrl+j breaks lines)."
            )
        prompt = self._screen.main.query_one(Prompt)
        with tempfile.TemporaryDirectory(prefix="pravaha-") as folder:
            file = Path(folder, "prompt.md")
            file.write_text(prompt.text, encoding="utf-8")
            refused = (
                "An editor cannot be opened in this terminal: type here (ctrl+j breaks lines)."
            )
            if self._run_outside(command, file, refused) == 0:
                text = file.read_text(encoding="utf-8", errors="replace")
                prompt.insert_unsent(text.rstrip("\n"), replace=True)

    def edit_file(self, file: Path, line: int) -> None:
        """Open a file of the user in $VISUAL or $EDITOR, at a line if the editor is known to take one.

        Raises:
            InvalidRequest: no editor is set, or it cannot be started here.
        """
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not command:
            raise InvalidRequest(f"No editor is set: set EDITOR to open {file}.")
        if Path(command.split()[0]).name in _TAKE_LINES:
            command = f"{command} +{line}"
        self._run_outside(command, file, f"An editor cannot be opened in this terminal: {file}.")

    def page(self) -> None:
        """Show the open branch as Markdown in $PAGER, else in less.

        Raises:
            InvalidRequest: the conversation is empty, or the pager cannot be opened.
        """
        session = self._screen.session
        if session.head is None:
            raise InvalidRequest(EMPTY)
        with tempfile.TemporaryDirectory(prefix="pravaha-") as folder:
            file = Path(folder, "branch.md")
            # A pager may pass control sequences on to the terminal.
            text = safe_text(export_markdown(session.title, session.path()))
            file.write_text(text, encoding="utf-8")
            refused = "A pager cannot be opened in this terminal: E writes a file."
            self._run_outside(os.environ.get("PAGER") or "less", file, refused)

    def _run_outside(self, command: str, file: Path, refused: str) -> int:
        """Run a command on a file, with the terminal; its exit status.

        Raises:
            InvalidRequest: the command cannot be started; `refused` if this terminal cannot be lent.
        """
        try:
            with self._terminal.suspended():
                # Descriptors 1 and 2 are the log (see `native_output`); these are the terminal.
                return subprocess.run(
                    [*shlex.split(command), str(file)],
                    check=False,
                    stdout=sys.__stdout__,
                    stderr=sys.__stderr__,
                ).returncode
        except SuspendNotSupported:
            raise InvalidRequest(refused) from None
        except (OSError, ValueError) as error:
            raise InvalidRequest(f"{command} can't be started: {error}.") from error

    def copy(self) -> None:
        """Copy the selected node, else the last answer, as Markdown.

        Raises:
            InvalidRequest: there is no answer.
        """
        self._terminal.copy_text(self._message())

    def copy_code(self) -> None:
        """Copy a code block of the selected message, else of the last answer; asks if there are several.

        Raises:
            InvalidRequest: there is none.
        """
        blocks = find_code(self._message())
        if not blocks:
            raise InvalidRequest("The message has no code block.")
        if len(blocks) == 1:
            self._terminal.copy_text(blocks[0])
            return
        choices = [
            Choice(str(number), safe_line(block.strip().split("\n", 1)[0])[:60], ())
            for number, block in enumerate(blocks[:_DIGITS], start=1)
        ]
        reason = (
            (f"The first {_DIGITS} of {len(blocks)}; y copies the whole message.",)
            if len(blocks) > _DIGITS
            else ()
        )

        def chosen(key: str | None) -> None:
            if key is not None:
                self._terminal.copy_text(blocks[int(key) - 1])

        self._screen.open_dialog(ChoiceScreen("Copy which code block?", reason, choices), chosen)

    def copy_branch(self) -> None:
        """Copy all messages of the open branch as Markdown."""
        session = self._screen.session
        self._terminal.copy_text(export_markdown(session.title, session.path()))

    def ask_export(self) -> None:
        """Ask for the name of a file and write the conversation to it.

        Raises:
            InvalidRequest: the conversation is empty.
        """
        if self._screen.session.head is None:
            raise InvalidRequest(EMPTY)

        async def given(name: str | None) -> None:
            if name is not None:
                await guarded(self._screen, self.export(name))

        hint = "FILE.json, .jsonl, .md or .messages.json"
        self._screen.open_dialog(AskText("Export to", hint=hint), given)

    async def export(self, name: str) -> None:
        """Write the conversation to a new file, in the format that its name ends in, and say so.

        Raises:
            InvalidRequest: see `export_to_file`.
            StoreError: messages cannot be saved at present.
        """
        self._screen.notify_safely(f"Written: {export_to_file(self._screen.session, name)}")

    def _message(self) -> str:
        session = self._screen.session
        if self._selection.node_id is not None:
            return session.view(self._selection.node_id).text
        answers = [node.text for node in session.path() if node.kind is NodeKind.ASSISTANT]
        if not answers:
            raise InvalidRequest("There is no answer to copy yet.")
        return answers[-1]


def _is_file(name: str) -> bool:
    try:
        return Path(name).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        return False


def find_code(text: str) -> list[str]:
    """The code blocks of a Markdown text as they were written, without fences, quote marks and indent."""
    tokens = make_parser().parse(text)
    return [
        token.content.removesuffix("\n")
        for token in tokens
        if token.type in ("fence", "code_block")
    ]
