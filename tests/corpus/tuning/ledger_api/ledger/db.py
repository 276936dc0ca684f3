"""SQLite access for the ledger."""

import sqlite3
from contextlib import closing

SORTABLE = {"date": "booked_on", "amount": "amount_cents"}


def connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    return connection


def account_by_id(connection: sqlite3.Connection, account_id: int) -> sqlite3.Row | None:
    return connection.execute("SELECT * FROM accounts WHERE id = ?", (account_id,)).fetchone()


def entries_sorted(connection: sqlite3.Connection, account_id: int, key: str) -> list[sqlite3.Row]:
    column = SORTABLE.get(key, "booked_on")
    statement = f"SELECT * FROM entries WHERE account_id = ? ORDER BY {column}"
    return connection.execute(statement, (account_id,)).fetchall()


def search_entries(connection: sqlite3.Connection, text: str) -> list[sqlite3.Row]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"SELECT * FROM entries WHERE memo LIKE '%{text}%'")
        return cursor.fetchall()


def _where(filters: dict[str, str]) -> str:
    parts = ["%s = '%s'" % (name, value) for name, value in filters.items()]
    return " AND ".join(parts) or "1 = 1"


def count_entries(connection: sqlite3.Connection, filters: dict[str, str]) -> int:
    query = "SELECT COUNT(*) FROM entries WHERE " + _where(filters)
    return connection.execute(query).fetchone()[0]


def total_by_owner(connection: sqlite3.Connection, owner: str) -> int:
    row = connection.execute(
        "SELECT SUM(amount_cents) FROM entries WHERE owner = :owner", {"owner": owner}
    ).fetchone()
    return row[0] or 0
