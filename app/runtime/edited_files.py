"""The files that an answer may change: those that the messages before it attach, read with a tool, or name.

All lie beneath the folder in which Pravāha was started. A file that was attached must still be what the model
has read: else its answer is about another text. Blocks: reads files and, for names without folders, lists the
project.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from agents.api.errors import InvalidTask
from agents.edits import FileEdit, Proposal, propose_edits
from agents.edits.fences import paths_in
from agents.edits.file_edit import read_file
from app.slash.attachments import AttachedText, mentioned_files, split_attached
from engine.api.errors import InvalidRequest
from engine.conversations.made_calls import read_calls
from engine.conversations.tree import NodeKind, NodeView

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})
_MOST_FILES = 20_000
_MOST_NAMES = 40
"""Names of a message that are looked for."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What an answer would change.

    Attributes:
        root: the folder of the paths.
        edits: one for each file.
        refused: sentences, each why code of the answer is not offered.
        unread: paths of files whose text the model has not seen in this conversation.
    """

    root: Path
    edits: tuple[FileEdit, ...] = ()
    refused: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.edits or self.refused)


def offered_edits(
    root: Path, path: Sequence[NodeView], written: Collection[tuple[str, bytes]] = ()
) -> Offer:
    """The edits of an answer.

    Args:
        root: the folder.
        path: the messages up to the answer, which is the last.
        written: paths and contents that this conversation has written itself.
    """
    if not path or ("```" not in path[-1].text and "~~~" not in path[-1].text):
        return Offer(root)
    files = _Files(root, path[:-1], written)
    proposal: Proposal = propose_edits(path[-1].text, files.known, find=files.find)
    edits = tuple(one for one in proposal.edits if one.path not in files.stale)
    stale = [
        f"{one.path} has changed since it was attached: name it again with @{one.path}."
        for one in proposal.edits
        if one.path in files.stale
    ]
    unread = tuple(
        one.path for one in edits if one.before is not None and one.path not in files.read
    )
    return Offer(root, edits, (*stale, *proposal.refused), unread)


class _Files:
    """The files of a conversation.

    Attributes:
        known: contents by path.
        read: paths whose text the model has.
        stale: paths whose text it has, and which are different now.
    """

    def __init__(
        self, root: Path, messages: Sequence[NodeView], written: Collection[tuple[str, bytes]]
    ) -> None:
        self.known: dict[str, bytes] = {}
        self.read: set[str] = set()
        self.stale: set[str] = set()
        self._root = root
        self._listed: dict[str, list[str]] | None = None
        for node in reversed(messages):
            if node.kind is NodeKind.USER:
                self._add_attached(node.text, written)
            elif node.kind is NodeKind.TOOL:
                self._add_read(node)
        for node in reversed(messages):
            if node.kind is NodeKind.USER:
                for name in paths_in(split_attached(node.text)[0])[:_MOST_NAMES]:
                    self._add_named(name)

    def find(self, name: str) -> tuple[str, bytes | None] | None:
        """As of `propose_edits`: a file that only the answer names, or where one can be created."""
        path = self._existing(name)
        if path is not None:
            data = self._bytes(path)
            return None if data is None else (path, data)
        parts = Path(name).parts
        if not parts or Path(name).is_absolute() or ".." in parts:
            return None
        if any(one.startswith(".") for one in parts) or not (self._root / name).parent.is_dir():
            return None
        return Path(name).as_posix(), None

    def _add_attached(self, text: str, written: Collection[tuple[str, bytes]]) -> None:
        typed, attached = split_attached(text)
        if not attached:
            return
        try:
            named = mentioned_files(typed)
        except InvalidRequest:
            return
        left = list(attached)
        for file in named:
            one = next((each for each in left if each.name == file.name), None)
            path = self._beneath(file)
            if one is None:
                continue
            left.remove(one)
            if path is None or path in self.known:
                continue
            data = self._bytes(path)
            if data is None:
                continue
            self.known[path] = data
            self.read.add(path)
            if not _is_text_of(one, data) and (path, data) not in written:
                self.stale.add(path)

    def _add_read(self, node: NodeView) -> None:
        for call in read_calls(node.calls):
            if call.name != "read" or call.state != "ok":
                continue
            try:
                given = orjson.loads(call.arguments)
            except orjson.JSONDecodeError:
                continue
            name = given.get("path") if isinstance(given, dict) else None
            if isinstance(name, str) and (path := self._existing(name)) is not None:
                self._add_named(path)
                self.read.add(path)

    def _add_named(self, name: str) -> None:
        path = self._existing(name)
        if path is None or path in self.known:
            return
        data = self._bytes(path)
        if data is not None:
            self.known[path] = data

    def _existing(self, name: str) -> str | None:
        """The path of a file that is there, by its path or, if only one has it, by its name."""
        if Path(name).is_absolute() or ".." in Path(name).parts:
            return self._beneath(Path(name))
        if (self._root / name).is_file():
            return Path(name).as_posix()
        if self._listed is None:
            self._listed = {}
            for path in _files_of(self._root):
                self._listed.setdefault(path.rpartition("/")[2], []).append(path)
        found = [
            path
            for path in self._listed.get(Path(name).name, ())
            if path == name or path.endswith(f"/{name}")
        ]
        return found[0] if len(found) == 1 else None

    def _beneath(self, file: Path) -> str | None:
        """The path of a file relative to the folder; None outside of it."""
        whole = Path(os.path.abspath(file))
        root = Path(os.path.abspath(self._root))
        return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else None

    def _bytes(self, path: str) -> bytes | None:
        try:
            return read_file(self._root, path)
        except InvalidTask:
            return None


def _is_text_of(attached: AttachedText, data: bytes) -> bool:
    """Whether a file still has the text that was attached."""
    return _bare(attached.text) == _bare(data.decode("utf-8", "replace"))


def _bare(text: str) -> str:
    """A text without what attaching changes: the ends of lines, and blanks at its end."""
    return "\n".join(text.removeprefix("\ufeff").splitlines()).rstrip()


def _files_of(root: Path) -> Iterator[str]:
    count = 0
    for folder, names, files in os.walk(root):
        names[:] = sorted(one for one in names if one not in _SKIPPED and not one.startswith("."))
        for name in files:
            count += 1
            if count > _MOST_FILES:
                return
            yield Path(folder, name).relative_to(root).as_posix()
