"""`EditorFiles`: the tools' files, with what the editor has not saved yet.

A file is read from the disk first: what the tools may not read, such as a link that leaves the folder, is
refused there. Then the editor is asked for its text. It writes, too, so that its buffers stay in step with
the disk. What it cannot do is done on the disk.
"""

import asyncio
import logging
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any

from acp.exceptions import RequestError
from pydantic import ValidationError

from agents.api.errors import InvalidTask
from agents.tools.beneath import (
    MAX_FILE_BYTES,
    parts_of,
    read_beneath,
    writable_parts,
    write_beneath,
)
from app.acp.editor import Editor

ANSWER_S = 20.0
"""Seconds in which an editor has to answer for a file; it asks nobody."""
_log = logging.getLogger(__name__)


class EditorFiles:
    """A `FileAccess` for one session; called on threads of the tools."""

    def __init__(self, editor: Editor, session: str, loop: asyncio.AbstractEventLoop) -> None:
        """Files of `session`; `editor` is used on `loop`."""
        self._editor = editor
        self._session = session
        self._loop = loop

    def read(self, root: Path, path: str) -> bytes:
        """See `FileAccess.read`."""
        parts = parts_of(path)
        try:
            saved = read_beneath(root, path)
        except InvalidTask:
            if self._editor.reads_files and not (_exists(root, parts) or _is_linked(root, parts)):
                text = self._text(root, parts)  # a new file that was never saved
                if text is not None:
                    return text.encode()
            raise
        if not self._editor.reads_files or b"\0" in saved[:8192]:
            return saved
        text = self._text(root, parts)
        return saved if text is None else text.encode()

    def write(self, root: Path, path: str, data: bytes, *, replace: bool) -> None:
        """See `FileAccess.write`."""
        if not self._editor.writes_files:
            write_beneath(root, path, data, replace=replace)
            return
        parts = writable_parts(path, data)
        if _is_linked(root, parts):
            raise InvalidTask(f"{path!r:.200} is or passes a symbolic link.")
        if not replace and _exists(root, parts):
            raise InvalidTask(f"{path} exists already: read it before replacing it.")
        try:
            self._wait(
                self._editor.write_text_file(
                    self._session, str(root.joinpath(*parts)), data.decode()
                )
            )
        except (RequestError, ConnectionError, FutureTimeout) as error:
            raise InvalidTask(
                f"The editor did not write {path}: {error or 'no answer'}."
            ) from error

    def _text(self, root: Path, parts: list[str]) -> str | None:
        """What the editor has; None if it has none."""
        try:
            text: str = self._wait(
                self._editor.read_text_file(self._session, str(root.joinpath(*parts)))
            )
        except (RequestError, ConnectionError, ValidationError, FutureTimeout) as error:
            _log.info("the editor did not read %s: %s", "/".join(parts), error)
            return None
        if len(text) > MAX_FILE_BYTES:
            raise InvalidTask(f"{'/'.join(parts)} is larger than {MAX_FILE_BYTES // 1000:,} kB.")
        return text

    def _wait(self, asked: Coroutine[Any, Any, Any]) -> Any:
        future = asyncio.run_coroutine_threadsafe(asked, self._loop)
        try:
            return future.result(ANSWER_S)
        except FutureTimeout:
            future.cancel()
            raise


def _exists(root: Path, parts: list[str]) -> bool:
    path = root.joinpath(*parts)
    return path.exists() or path.is_symlink()


def _is_linked(root: Path, parts: list[str]) -> bool:
    """Whether a path is or passes a symbolic link."""
    return any(root.joinpath(*parts[:end]).is_symlink() for end in range(1, len(parts) + 1))
