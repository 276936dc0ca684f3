"""`SessionFolders`: the folder in which each conversation was last continued by an editor.

It is kept beside the conversations, which have no folders. A file that cannot be read counts as empty, and
failed writes are logged: editors name the folder again when they load a session.
"""

import json
import logging
import os
from pathlib import Path

from engine.files.file_lock import hold

MAX_KNOWN = 2_000
"""Conversations whose folder is remembered."""
_log = logging.getLogger(__name__)


class SessionFolders:
    """Folders by conversation. Several processes may use the same file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> dict[str, str]:
        """The folders that are known, that of the last used conversation last."""
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            _log.warning("%s cannot be read and counts as empty: %s", self._path, error)
            return {}
        if not isinstance(values, dict):
            return {}
        return {name: value for name, value in values.items() if isinstance(value, str)}

    def remember(self, conversation: str, folder: Path) -> None:
        """Remember the folder of a conversation."""
        partial = self._path.with_suffix(f".{os.getpid()}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with hold(self._path.with_suffix(".lock")):
                known = self.all()
                known.pop(conversation, None)
                known[conversation] = str(folder)
                kept = dict(list(known.items())[-MAX_KNOWN:])
                partial.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
                partial.replace(self._path)
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._path, error)
