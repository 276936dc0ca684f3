"""Scripts of SQL for migrations, and the schema version that they lead to."""

import sqlite3


def schema_version(connection: sqlite3.Connection) -> int:
    """The database's `PRAGMA user_version`; 0 in a new one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def statements_of(script: str) -> list[str]:
    """The script's statements. `executescript` would commit the transaction around them."""
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements
