"""Operation log: changes of pointers and flags, stored with their inverses for undo and redo.

A change is a list of assignments; applying an assignment returns its inverse. The text of nodes is
never changed. All functions run inside the writer's transaction.
"""

import json
import sqlite3
from collections.abc import Sequence

from engine.conversations.assignment import Assignment

_POINTERS = {
    "checkout": ("checkout", "parent_id", "child_id"),
    "sources": ("source", "node_id", "names"),
    "model": ("chosen_model", "node_id", "name"),
}
"""By target: the table, the column of the key, and that of the value."""
_TREE_FLAGS = {"title", "archived"}
_NODE_FLAGS = {"label", "rating", "pruned_at"}

_Old = tuple[str | int | float | None] | None
"""The row of the value before; None if there was none."""


def apply(
    connection: sqlite3.Connection, tree_id: str, changes: Sequence[Assignment], now: float
) -> None:
    """Apply the changes without logging them, so that they cannot be undone."""
    for change in changes:
        _apply(connection, tree_id, change, now)


def record(
    connection: sqlite3.Connection,
    tree_id: str,
    name: str,
    changes: Sequence[Assignment],
    now: float,
    *,
    joined: bool = False,
) -> None:
    """Apply the changes and log them as `name`; discards the undone operations.

    With `joined`, changes that follow an operation of the same name become a part of it: undo reverts
    them together.
    """
    undo = [_apply(connection, tree_id, change, now) for change in changes]
    connection.execute("DELETE FROM oplog WHERE tree_id = ? AND undone = 1", (tree_id,))
    last = connection.execute(
        "SELECT n, name, op, undo FROM oplog WHERE tree_id = ? ORDER BY n DESC LIMIT 1", (tree_id,)
    ).fetchone()
    if joined and last is not None and last[1] == name:
        connection.execute(
            "UPDATE oplog SET op = ?, undo = ? WHERE n = ?",
            (
                _dump(_last_of_each([*_load(last[2]), *changes])),
                # The inverses are applied in order, so the oldest value of each comes last and stays.
                _dump(_last_of_each([*undo[::-1], *_load(last[3])])),
                last[0],
            ),
        )
        return
    connection.execute(
        "INSERT INTO oplog (tree_id, at, name, op, undo) VALUES (?, ?, ?, ?, ?)",
        (tree_id, now, name, _dump(changes), _dump(undo[::-1])),
    )


def undo(connection: sqlite3.Connection, tree_id: str, now: float) -> str | None:
    """Undo the newest operation; returns its name, or None if there is none."""
    return _replay(
        connection,
        tree_id,
        now,
        "SELECT n, name, undo FROM oplog WHERE tree_id = ? AND undone = 0 ORDER BY n DESC LIMIT 1",
        undone=1,
    )


def redo(connection: sqlite3.Connection, tree_id: str, now: float) -> str | None:
    """Redo the operation that was undone last; returns its name, or None if there is none."""
    return _replay(
        connection,
        tree_id,
        now,
        "SELECT n, name, op FROM oplog WHERE tree_id = ? AND undone = 1 ORDER BY n LIMIT 1",
        undone=0,
    )


def _replay(
    connection: sqlite3.Connection, tree_id: str, now: float, query: str, *, undone: int
) -> str | None:
    row = connection.execute(query, (tree_id,)).fetchone()
    if row is None:
        return None
    n, name, changes = row
    for change in _load(changes):
        _apply(connection, tree_id, change, now)
    connection.execute("UPDATE oplog SET undone = ? WHERE n = ?", (undone, n))
    return str(name)


def _apply(
    connection: sqlite3.Connection, tree_id: str, change: Assignment, now: float
) -> Assignment:
    """Apply an assignment; returns its inverse."""
    if change.target == "head":
        old = _set_head(connection, tree_id, change, now)
    elif change.target in _POINTERS:
        old = _set_pointer(connection, tree_id, change)
    else:
        old = _set_flag(connection, tree_id, change)
    return Assignment(change.target, change.key, old[0] if old else None)


def _set_head(connection: sqlite3.Connection, tree_id: str, change: Assignment, now: float) -> _Old:
    key = (tree_id, change.key)
    old: _Old = connection.execute(
        "SELECT node_id FROM head WHERE tree_id = ? AND name = ?", key
    ).fetchone()
    connection.execute("DELETE FROM head WHERE tree_id = ? AND name = ?", key)
    if change.value is not None:
        connection.execute(
            "INSERT INTO head (tree_id, name, node_id, used_at) VALUES (?, ?, ?, ?)",
            (*key, change.value, now),
        )
    return old


def _set_pointer(connection: sqlite3.Connection, tree_id: str, change: Assignment) -> _Old:
    table, key_column, value_column = _POINTERS[change.target]
    key = (tree_id, change.key)
    # Names of tables and columns come from the closed set above.
    row = f"FROM {table} WHERE tree_id = ? AND {key_column} = ?"
    old: _Old = connection.execute(f"SELECT {value_column} {row}", key).fetchone()
    connection.execute(f"DELETE {row}", key)
    if change.value is not None:
        connection.execute(
            f"INSERT INTO {table} (tree_id, {key_column}, {value_column}) VALUES (?, ?, ?)",  # noqa: S608
            (*key, change.value),
        )
    return old


def _set_flag(connection: sqlite3.Connection, tree_id: str, change: Assignment) -> _Old:
    if change.target in _TREE_FLAGS:
        table, where = "tree", (tree_id,)
        condition = "id = ?"
    elif change.target in _NODE_FLAGS:
        table, where = "node", (tree_id, change.key)  # type: ignore[assignment]
        condition = "tree_id = ? AND id = ?"
    else:
        raise ValueError(f"unknown oplog target {change.target!r}")
    # Column and table names come from the closed sets above.
    old: _Old = connection.execute(
        f"SELECT {change.target} FROM {table} WHERE {condition}",  # noqa: S608
        where,
    ).fetchone()
    connection.execute(
        f"UPDATE {table} SET {change.target} = ? WHERE {condition}",  # noqa: S608
        (change.value, *where),
    )
    return old


def _last_of_each(changes: Sequence[Assignment]) -> list[Assignment]:
    """The changes without those that a later one of the same target and key overrides."""
    last = {(change.target, change.key): change for change in changes}
    return list(last.values())


def _dump(changes: Sequence[Assignment]) -> str:
    return json.dumps([[c.target, c.key, c.value] for c in changes])


def _load(text: str) -> list[Assignment]:
    return [Assignment(*fields) for fields in json.loads(text)]
