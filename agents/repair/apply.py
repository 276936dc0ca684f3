"""`apply_changes`: writes accepted changes to the user's tree, all of them or none.

Everything is prepared in `.pravaha/repair-apply` beneath the root: the new contents, the old ones, and a
journal that names them. Then each file is renamed into place. An error puts the old contents back at once;
after a kill the next repair does (`undo_unfinished`), as long as nobody has changed the files since.
Removing the journal is the point from which the change is done.
"""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.api.errors import InvalidTask
from agents.repair.tree_state import TreeState, named
from agents.tools.beneath import parts_of

_FOLDER = Path(".pravaha") / "repair-apply"
_JOURNAL = "journal.json"
Changes = Mapping[str, tuple[str | None, str | None]]
"""The text before and after by path; None for no file."""


def apply_changes(root: Path, changes: Changes, expected: TreeState) -> None:
    """Write the changes.

    Args:
        root: the user's tree.
        changes: by path.
        expected: the state in which the changes were proved.

    Raises:
        InvalidTask: the tree is in another state, a path leaves it, or another apply is at work; nothing is
            changed.
        OSError: a file cannot be written; everything is as it was.
    """
    undo_unfinished(root)
    _refuse_changed(root, expected)
    folder = root / _FOLDER
    made_parent = not folder.parent.exists()
    if folder.parent.is_symlink():
        raise InvalidTask(f"{folder.parent} is a symbolic link: nothing was applied.")
    folder.parent.mkdir(exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError:
        raise InvalidTask(f"Another repair is being applied to {root}.") from None
    try:
        entries = [_prepare(root, folder, at, *one) for at, one in enumerate(changes.items())]
        _write(folder / _JOURNAL, json.dumps({"entries": entries}).encode())
        _sync_folder(folder)
        try:
            for entry in entries:
                _put(root, folder, entry)
        except BaseException:
            _undo(root, folder, entries)
            raise
        (folder / _JOURNAL).unlink()  # from here on it is done
        _sync_folder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if made_parent and folder.parent.is_dir() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()


def undo_unfinished(root: Path) -> bool:
    """Put back what an apply that was killed has written; whether there was one.

    Raises:
        InvalidTask: a file was changed since, so that somebody has to decide; nothing is changed.
        OSError: a file cannot be written.
    """
    folder = root / _FOLDER
    if folder.parent.is_symlink() or not folder.is_dir():
        return False
    try:
        entries = json.loads((folder / _JOURNAL).read_bytes())["entries"]
    except FileNotFoundError:
        shutil.rmtree(folder)  # it was killed before it wrote anything, or after it was done
        return False
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidTask(
            f"{folder / _JOURNAL} is damaged: look at it, then remove {folder}."
        ) from error
    foreign = [
        one["path"]
        for one in entries
        if _digest(root / one["path"]) not in (one["old"], one["new"])
    ]
    if foreign:
        raise InvalidTask(
            f"An earlier repair was killed while it was applied, and {named(foreign)} has changed since: "
            f"the old contents are in {folder}; put back what you want and remove the folder."
        )
    _undo(root, folder, entries)
    shutil.rmtree(folder)
    return True


def _refuse_changed(root: Path, expected: TreeState) -> None:
    changed = expected.changed(TreeState.of(root))
    if changed:
        raise InvalidTask(
            f"The tree has changed since the repair began ({named(changed)}): nothing was applied. The "
            "diff is still shown; run the repair again, or apply it by hand."
        )


def _prepare(
    root: Path, folder: Path, at: int, path: str, texts: tuple[str | None, str | None]
) -> dict[str, Any]:
    """Write the old and new contents of one file beside each other; its entry of the journal."""
    old, new = texts
    parts_of(path)
    target = root / path
    if any((root / one).is_symlink() for one in _parents(path)) or target.is_symlink():
        raise InvalidTask(f"{path} is or passes a symbolic link: nothing was applied.")
    present = target.read_bytes() if target.is_file() else None
    if present != (None if old is None else old.encode("utf-8")):
        raise InvalidTask(f"{path} has changed since the repair began: nothing was applied.")
    mode = stat.S_IMODE(target.stat().st_mode) if present is not None else 0o644
    for kind, data in (("old", present), ("new", None if new is None else new.encode("utf-8"))):
        if data is not None:
            _write(folder / f"{at}.{kind}", data)
            os.chmod(folder / f"{at}.{kind}", mode)
    return {
        "path": path,
        "at": at,
        "old": _digest_of(present),
        "new": _digest_of(None if new is None else new.encode("utf-8")),
        "folders": [one for one in _parents(path) if not (root / one).exists()],
    }


def _put(root: Path, folder: Path, entry: Mapping[str, Any]) -> None:
    target = root / entry["path"]
    prepared = folder / f"{entry['at']}.new"
    if not entry["new"]:
        target.unlink()
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(prepared, target)
    _sync_folder(target.parent)


def _undo(root: Path, folder: Path, entries: list[dict[str, Any]]) -> None:
    """Put the old contents back; files that were not reached yet have them already."""
    for entry in entries:
        target = root / entry["path"]
        if _digest(target) == entry["old"]:
            continue
        if entry["old"]:
            # The copy stays until all is put back, so that this can be repeated after another kill.
            again = folder / f"{entry['at']}.again"
            shutil.copy2(folder / f"{entry['at']}.old", again)
            os.replace(again, target)
        else:
            target.unlink(missing_ok=True)
    for entry in entries:
        for one in reversed(entry["folders"]):
            if (root / one).is_dir() and not any((root / one).iterdir()):
                (root / one).rmdir()


def _parents(path: str) -> list[str]:
    parts = parts_of(path)[:-1]
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _digest(path: Path) -> str:
    return _digest_of(path.read_bytes() if path.is_file() and not path.is_symlink() else None)


def _digest_of(data: bytes | None) -> str:
    return "" if data is None else hashlib.blake2b(data, digest_size=16).hexdigest()


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
