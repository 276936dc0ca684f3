"""`SafeZip`: reads members of an archive, with bounds on what they unpack to."""

import zipfile
from io import BytesIO

from engine.retrieval.api.errors import Unreadable

_MAX_MEMBERS = 10_000


class SafeZip:
    """An archive in memory. All that is read from it together is bounded, whatever sizes it declares."""

    def __init__(self, data: bytes, most: int) -> None:
        """Open it.

        Args:
            data: the archive.
            most: bytes that all reads together may unpack.

        Raises:
            Unreadable: it has too many members.
            zipfile.BadZipFile: it is damaged.
        """
        self._archive = zipfile.ZipFile(BytesIO(data))
        self._most = self._left = most
        self.names = frozenset(self._archive.namelist())
        if len(self._archive.filelist) > _MAX_MEMBERS:
            raise Unreadable(f"It has more than {_MAX_MEMBERS:,} parts.")

    def read(self, name: str) -> bytes:
        """A member.

        Raises:
            Unreadable: it is encrypted, or unpacks to more than is permitted.
            KeyError: there is none of this name.
        """
        info = self._archive.getinfo(name)
        if info.flag_bits & 1:
            raise Unreadable("It is protected by a password.")
        with self._archive.open(info) as member:
            data = member.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise Unreadable(f"It unpacks to more than {self._most:,} bytes.")
        return data

    def read_if_there(self, name: str) -> bytes:
        """A member, or nothing if there is none of this name."""
        return self.read(name) if name in self.names else b""
