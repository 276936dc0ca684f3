"""Preferences that the screen saves between starts, in one small JSON file in the data folder.

Settings from any source (flag, variable, file) take precedence. A file that cannot be read counts as
empty, and failed writes are logged; neither raises.
"""

import json
import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)


class Preferences:
    """Named strings. The file is read once and replaced as a whole on each change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values = _read(path)

    def get(self, name: str) -> str | None:
        """The saved value, or None."""
        return self._values.get(name)

    def set(self, name: str, value: str) -> None:
        """Save a value immediately and atomically."""
        if self._values.get(name) == value:
            return
        self._values[name] = value
        partial = self._path.with_suffix(f".{os.getpid()}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps(self._values, indent=2) + "\n", encoding="utf-8")
            partial.replace(self._path)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error)


def _read(path: Path) -> dict[str, str]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        log.warning("%s cannot be read and counts as empty: %s", path, error)
        return {}
    if not isinstance(values, dict):
        return {}
    return {name: value for name, value in values.items() if isinstance(value, str)}
