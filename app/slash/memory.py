"""`/memory`: list, search, forget and export what the agents remember on this machine, as lines of text.

The store is imported by the first command: the screen's start does not wait for it.
"""

import json
import os
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from app.text.safe_text import safe_line
from engine.api.errors import InvalidRequest

if TYPE_CHECKING:
    from agents.memory.entry import MemoryEntry
    from agents.memory.store import MemoryStore

USAGE = "/memory takes nothing, search WORDS, forget ID… or export FILE."
_LISTED = 30
_SEARCH_TOKENS = 2_000


def run_memory(path: Path, argument: str) -> list[str]:
    """Do what the argument says; the lines to show. Blocks.

    Args:
        path: the database.
        argument: empty, `search WORDS`, `forget ID…` or `export FILE`.

    Raises:
        InvalidRequest: the argument has another form, no such entry exists, or the file cannot be written.
        MemoryStoreError: the database cannot be used.
    """
    from agents.memory.store import MemoryStore

    action, _, rest = argument.partition(" ")
    rest = rest.strip()
    if action not in ("", "search", "forget", "export") or bool(action) is not bool(rest):
        raise InvalidRequest(USAGE)
    if not path.exists():  # nothing was ever remembered: create no file
        return ["Nothing is remembered."]
    with MemoryStore(path) as store:
        match action:
            case "search":
                return _search(store, rest)
            case "forget":
                return [_forget(store, rest.split())]
            case "export":
                return [_export(store, Path(rest).expanduser())]
        return _rows(store.entries(limit=_LISTED)) or ["Nothing is remembered."]


def _search(store: "MemoryStore", words: str) -> list[str]:
    from agents.memory.recall import recall

    found = recall(store, words, scopes=None, now=time.time(), max_tokens=_SEARCH_TOKENS)
    rows = _rows([one.entry for one in found.memories])
    return rows or ["Nothing is remembered about that."]


def _forget(store: "MemoryStore", keys: Sequence[str]) -> str:
    unknown = [key for key in keys if not store.history(key)]
    if unknown:
        raise InvalidRequest(f"There is no memory {safe_line(unknown[0])}; nothing was forgotten.")
    forgotten = store.forget(keys)
    later = "" if forgotten.purged else " Another process reads: the text leaves the file later."
    return f"Forgot {len(set(keys))}.{later}"


def _export(store: "MemoryStore", file: Path) -> str:
    from agents.memory.entry import entry_fields

    lines = [json.dumps(entry_fields(entry), ensure_ascii=False) for entry in store.export()]
    try:
        # O_EXCL: an export never overwrites a file.
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        with os.fdopen(os.open(file, flags, 0o600), "w", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidRequest(f"{file} can't be written: {reason}.") from error
    return f"Wrote {len(lines)} versions to {safe_line(str(file))}."


def _rows(entries: "Sequence[MemoryEntry]") -> list[str]:
    """Two lines for each entry: its id, date, origin, scope and labels; its text."""
    rows: list[str] = []
    for entry in entries:
        labels = ", ".join(sorted(entry.taint - {"trusted"}))
        about = (
            datetime.fromtimestamp(entry.created).strftime("%Y-%m-%d %H:%M"),
            entry.path or entry.kind.value,
            f"from {entry.origin}",
            f"{entry.scope.kind.value} {entry.scope.owner}".strip(),
            labels,
        )
        rows.append(safe_line(f"{entry.id}  {'; '.join(filter(None, about))}"))
        rows.append("  " + safe_line(" ".join(entry.text.split())))
    return rows
