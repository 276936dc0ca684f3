"""Columns of the catalogue's tables, and objects in them as JSON."""

from collections.abc import Mapping
from typing import Any

import orjson

FILE_COLUMNS = "id, filename, stored_as, purpose, size, created_at, expires_at"
"""In the order of `UploadedFile`."""


def prefixed(table: str, columns: str) -> str:
    """Columns with the name of their table."""
    return ", ".join(f"{table}.{column}" for column in columns.split(", "))


def dump_object(value: Mapping[str, Any]) -> str:
    """An object as text that is equal for equal objects."""
    return orjson.dumps(dict(value), option=orjson.OPT_SORT_KEYS).decode()
