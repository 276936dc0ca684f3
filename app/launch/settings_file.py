"""`SettingsFile`: a client's settings on disk: changed with a backup, and put back.

A symbolic link stays one: its target is changed. What was written is remembered by its digest, so that
putting back never loses what somebody else has written since.

```
folder/NAME.json     where the settings are, what was written, whether there was a file before
folder/NAME.backup   the file before the first change, byte for byte
folder/NAME.backup.1 an earlier one, whose file was changed by somebody else since, or is not the one of now
```
"""

import hashlib
import itertools
import json
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.launch.errors import SettingsError
from engine.files.replaced_file import replace_file

MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Written:
    """A change that can be undone.

    Attributes:
        path: the file, links resolved.
        existed: whether there was one before.
        digest: of what was written.
        mode: of the file before.
    """

    path: Path
    existed: bool
    digest: str
    mode: int


class SettingsFile:
    """The settings of one client.

    Args:
        name: of the client.
        path: its file, which need not exist.
        folder: where the backup is kept.
    """

    def __init__(self, name: str, path: Path, folder: Path) -> None:
        self.path = path
        self.backup = folder / f"{name}.backup"
        self._note = folder / f"{name}.json"
        self._folder = folder

    def read(self) -> bytes | None:
        """What is in the file; None if there is none.

        Raises:
            SettingsError: it cannot be read.
        """
        try:
            if not self.path.exists():
                if self.path.is_symlink():
                    raise SettingsError(f"{self.path} is a link to a file that does not exist.")
                return None
            if not self.path.is_file():
                raise SettingsError(f"{self.path} is no file.")
            if self.path.stat().st_size > MAX_BYTES:
                raise SettingsError(f"{self.path} is larger than {MAX_BYTES // 1024**2} MiB.")
            return self.path.read_bytes()
        except OSError as error:
            raise SettingsError(f"{self.path} cannot be read: {error.strerror}.") from error

    def text(self) -> str:
        """What is in the file as text; empty if there is none.

        Raises:
            SettingsError: it cannot be read, or is no text.
        """
        try:
            return (self.read() or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise SettingsError(f"{self.path} is no text in UTF-8.") from error

    def write(self, text: str, *, before: bytes | None) -> None:
        """Write the settings, with a backup of what was there before the first change.

        Args:
            text: the new settings.
            before: what the change was made from.

        Raises:
            SettingsError: the file has changed since it was read, or cannot be written.
        """
        if self.read() != before:
            raise SettingsError(f"{self.path} has changed meanwhile: nothing was written.")
        data, earlier = text.encode(), self.written()
        try:
            target = self.path.resolve()
            mode = stat.S_IMODE(target.stat().st_mode) if before is not None else 0o600
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if earlier and earlier.path == target and earlier.digest == _digest(before):
                # The backup stays that of the settings before our first change.
                existed, mode_before = earlier.existed, earlier.mode
            else:
                existed, mode_before = before is not None, mode
                self._keep_backup(but=before)
                replace_file(self.backup, before or b"")
            note = {
                "path": str(target),
                "existed": existed,
                "digest": _digest(data),
                "mode": mode_before,
            }
            # First the note: after a kill between the two, an undo says that the file is not what it wrote.
            replace_file(self._note, json.dumps(note, indent=1).encode())
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, data, mode)
        except OSError as error:
            raise SettingsError(f"{self.path} cannot be written: {error.strerror}.") from error

    def _keep_backup(self, *, but: bytes | None) -> None:
        """Keep the backup of an earlier change that cannot be undone any more, unless it says the same."""
        earlier = self.backup.read_bytes() if self.backup.exists() else b""
        if earlier and earlier != but:
            numbers = itertools.count(1)
            free = (self.backup.with_suffix(f".backup.{number}") for number in numbers)
            self.backup.rename(next(path for path in free if not path.exists()))

    def written(self) -> Written | None:
        """The change that can be undone; None if there is none.

        Raises:
            SettingsError: the note about it is damaged.
        """
        try:
            found: dict[str, Any] = json.loads(self._note.read_bytes())
            return Written(
                Path(found["path"]),
                bool(found["existed"]),
                str(found["digest"]),
                int(found["mode"]),
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(
                f"{self._note} is damaged: the settings before are in {self.backup}."
            ) from error

    def undo(self) -> Path:
        """Put back what was there before the first change; the file.

        Raises:
            SettingsError: there is nothing to undo, or the file was changed since.
        """
        written = self.written()
        if written is None:
            raise SettingsError("There is nothing to undo: these settings were not written here.")
        try:
            current = written.path.read_bytes() if written.path.is_file() else None
            if current is None or _digest(current) != written.digest:
                raise SettingsError(
                    f"{written.path} was changed since it was written, so it stays as it is: the settings "
                    f"before are in {self.backup}."
                )
            if written.existed:
                replace_file(written.path, self.backup.read_bytes(), written.mode)
            else:
                written.path.unlink()
            self._note.unlink()
            self.backup.unlink(missing_ok=True)
        except OSError as error:
            raise SettingsError(f"{written.path} cannot be put back: {error.strerror}.") from error
        return written.path


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()
