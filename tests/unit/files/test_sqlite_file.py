"""Databases are private, durable, and forget what is deleted."""

import sqlite3
import stat

import pytest

from engine.files.sqlite_file import create_sqlite_file, open_sqlite_file, transaction
from tests.fakes.undurable_disk import durable_connect


@pytest.mark.parametrize(
    ("journal", "companions"), [("wal", ["a.db-shm", "a.db-wal"]), ("delete", [])]
)
def test_a_new_database_is_private(tmp_path, journal, companions):
    path = tmp_path / "folder" / "a.db"
    connection = create_sqlite_file(path, journal=journal)
    connection.execute("CREATE TABLE t (x)")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(one.name for one in path.parent.iterdir()) == ["a.db", *companions]
    assert connection.execute("PRAGMA journal_mode").fetchone() == (journal,)
    connection.close()


def test_an_open_database_is_made_private(tmp_path):
    path = tmp_path / "a.db"
    path.touch(0o644)
    create_sqlite_file(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_both_ways_of_opening_have_the_same_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite3, "connect", durable_connect)
    path = tmp_path / "a.db"
    for connection in (create_sqlite_file(path), open_sqlite_file(path)):
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in (
                "journal_mode",
                "synchronous",
                "foreign_keys",
                "secure_delete",
                "busy_timeout",
            )
        }
        assert settings == {
            "journal_mode": "wal",
            "synchronous": 2,
            "foreign_keys": 1,
            "secure_delete": 1,
            "busy_timeout": 10_000,
        }
        connection.close()


def test_opening_creates_nothing(tmp_path):
    with pytest.raises(sqlite3.OperationalError):
        open_sqlite_file(tmp_path / "a.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "a.db"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        create_sqlite_file(path)
    assert path.read_bytes().startswith(b"no database")


def test_a_name_with_signs_of_a_url_is_a_name(tmp_path):
    path = tmp_path / "100%?a=b#c.db"
    create_sqlite_file(path).close()
    assert path.exists()


def test_a_transaction_is_undone_by_an_exception_and_a_nested_one_joins_it(tmp_path):
    db = create_sqlite_file(tmp_path / "a.db")
    db.execute("CREATE TABLE t (x)")
    with transaction(db) as outer, transaction(outer) as inner:
        inner.execute("INSERT INTO t VALUES (1)")

    def fails():
        with transaction(db):
            with transaction(db):
                db.execute("INSERT INTO t VALUES (2)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert db.execute("SELECT x FROM t").fetchall() == [(1,)]
    assert not db.in_transaction
    db.close()
