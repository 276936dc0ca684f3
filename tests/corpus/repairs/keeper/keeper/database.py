"""Notes in SQLite."""

import sqlite3


def by_owner(connection: sqlite3.Connection, owner: str) -> list:
    return connection.execute(f"SELECT text FROM note WHERE owner = '{owner}' ORDER BY text").fetchall()


def by_word(connection: sqlite3.Connection, word: str) -> list:
    query = "SELECT text FROM note WHERE text LIKE '%%%s%%'" % word
    return connection.execute(query).fetchall()


def add(connection: sqlite3.Connection, owner: str, text: str) -> None:
    connection.execute("INSERT INTO note VALUES ('" + owner + "', '" + text + "')")


def ordered(connection: sqlite3.Connection, column: str) -> list:
    return connection.execute(f"SELECT text FROM note ORDER BY {column}").fetchall()
