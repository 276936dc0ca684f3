import sqlite3

import pytest

from keeper import database, documents, programs


@pytest.fixture
def connection():
    opened = sqlite3.connect(":memory:")
    opened.execute("CREATE TABLE note (owner, text)")
    return opened


def test_settings():
    assert documents.settings("a: 1") == {"a": 1}


def test_amount():
    assert documents.amount("12") == 12


def test_notes(connection):
    database.add(connection, "ann", "milk")
    assert database.by_owner(connection, "ann") == [("milk",)]
    assert database.by_word(connection, "il") == [("milk",)]


def test_listing(tmp_path):
    (tmp_path / "a").write_text("")
    assert programs.listing(str(tmp_path)) == "a\n"


def test_publish(tmp_path):
    (tmp_path / "a").write_text("")
    programs.publish(str(tmp_path / "a"))
    assert (tmp_path / "a").stat().st_mode & 0o400
