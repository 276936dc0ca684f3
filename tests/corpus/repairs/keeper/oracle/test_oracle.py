import io
import os
import sqlite3
import tarfile

import pytest

from keeper import database, documents, programs


@pytest.fixture
def connection():
    opened = sqlite3.connect(":memory:")
    opened.execute("CREATE TABLE note (owner, text)")
    opened.executemany("INSERT INTO note VALUES (?, ?)", [("ann", "milk"), ("bob", "eggs"), ("ann", "bread")])
    return opened


def attempt(call):
    try:
        call()
    except Exception:
        pass


def test_settings(tmp_path):
    assert documents.settings("a: [1, x]\nb: {c: 2.5}") == {"a": [1, "x"], "b": {"c": 2.5}}
    attempt(lambda: documents.settings(f"!!python/object/apply:os.mkdir [{str(tmp_path / 'made')!r}]"))
    assert not (tmp_path / "made").exists()


def test_amount(tmp_path):
    assert documents.amount("12") == 12
    assert documents.amount("2.5") == 2.5
    attempt(lambda: documents.amount(f"__import__('os').mkdir({str(tmp_path / 'made')!r})"))
    assert not (tmp_path / "made").exists()


def test_restore(tmp_path):
    import pickle

    class Attack:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    attempt(lambda: documents.restore(pickle.dumps(Attack())))
    assert not (tmp_path / "made").exists()


def archive(path, name):
    with tarfile.open(path, "w") as made:
        member = tarfile.TarInfo(name)
        member.size = 1
        made.addfile(member, io.BytesIO(b"x"))


def test_unpack(tmp_path):
    (tmp_path / "in").mkdir()
    archive(tmp_path / "good.tar", "a/b.txt")
    documents.unpack(str(tmp_path / "good.tar"), str(tmp_path / "in"))
    assert (tmp_path / "in/a/b.txt").read_text() == "x"
    archive(tmp_path / "bad.tar", "../out.txt")
    attempt(lambda: documents.unpack(str(tmp_path / "bad.tar"), str(tmp_path / "in")))
    assert not (tmp_path / "out.txt").exists()


def test_note(tmp_path, monkeypatch):
    import builtins

    original, opened = builtins.open, []

    def spied(file, mode="r", *rest, **options):
        opened.append(options.get("encoding"))
        return original(file, mode, *rest, **options)

    (tmp_path / "note").write_text("grün", encoding="utf-8")
    monkeypatch.setattr(builtins, "open", spied)
    assert documents.note(str(tmp_path / "note")) == "grün"
    assert opened == ["utf-8"]


def test_by_owner(connection):
    assert database.by_owner(connection, "ann") == [("bread",), ("milk",)]
    assert database.by_owner(connection, "x' OR '1'='1") == []


def test_by_word(connection):
    assert database.by_word(connection, "il") == [("milk",)]
    assert database.by_word(connection, "x%' OR 1=1 --") == []


def test_add(connection):
    database.add(connection, "eve", "it's")
    assert database.by_owner(connection, "eve") == [("it's",)]


def test_ordered(connection):
    assert database.ordered(connection, "text") == [("bread",), ("eggs",), ("milk",)]
    with pytest.raises((ValueError, sqlite3.Error)):
        database.ordered(connection, "(SELECT 1)")


def test_listing(tmp_path):
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text("")
    assert programs.listing(str(tmp_path)) == "a\nb\n"
    attempt(lambda: programs.listing(f"{tmp_path}; touch {tmp_path}/made"))
    assert not (tmp_path / "made").exists()


def test_count_lines(tmp_path):
    (tmp_path / "a b").write_text("1\n2\n")
    assert programs.count_lines(str(tmp_path / "a b")) == 2
    attempt(lambda: programs.count_lines(f"x'; touch {tmp_path}/made; '"))
    assert not (tmp_path / "made").exists()


def test_make_folder(tmp_path):
    assert programs.make_folder(str(tmp_path / "new")) == 0
    assert (tmp_path / "new").is_dir()
    attempt(lambda: programs.make_folder(f"{tmp_path}/other; touch {tmp_path}/made"))
    assert not (tmp_path / "made").exists()


def test_scratch():
    path = programs.scratch()
    assert path.endswith(".txt")
    assert os.path.exists(path)
    os.unlink(path)


def test_publish(tmp_path):
    (tmp_path / "a").write_text("")
    programs.publish(str(tmp_path / "a"))
    assert (tmp_path / "a").stat().st_mode & 0o777 in (0o700, 0o755, 0o644, 0o600, 0o744)
