"""The memory's database: a naive model beside it, deletion to the last byte, kill -9, other processes."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agents.api.errors import InvalidTask
from agents.memory.database import MemoryStoreError
from agents.memory.entry import (
    USER,
    Episode,
    MemoryKind,
    Scope,
    ScopeKind,
    entry_fields,
    stable_hash,
)
from agents.memory.recall import recall
from agents.memory.store import MemoryStore
from agents.tools.tool import Taint

ROOT = Path(__file__).parents[4]
PROJECT = Scope(ScopeKind.PROJECT, "/work")
UNTRUSTED = frozenset({Taint.UNTRUSTED})


@pytest.fixture
def store(tmp_path):
    with MemoryStore(tmp_path / "memory.db", clock=lambda: 1_000_000.0) as opened:
        yield opened


def file_bytes(folder):
    return b"".join(file.read_bytes() for file in folder.iterdir())


def put(store, path, text, **options):
    return store.store_fact(path, text, **{"scope": USER, "origin": "user", **options})


class MemoryModel(RuleBasedStateMachine):
    """The store beside a dictionary of lists of versions."""

    PATHS = st.sampled_from(["a", "a/b", "c"])
    SCOPES = st.sampled_from([USER, PROJECT])
    WORDS = st.sampled_from(["amber", "birch", "cedar", "delta"])

    def __init__(self):
        super().__init__()
        self.folder = Path(os.environ["PYTEST_MEMORY_FOLDER"])
        self.path = self.folder / f"{id(self)}.db"
        self.store = MemoryStore(self.path, clock=lambda: 1_000_000.0)
        self.model = {}

    def teardown(self):
        self.store.close()
        for file in self.folder.glob(f"{id(self)}.db*"):
            file.unlink()

    @rule(path=PATHS, scope=SCOPES, words=st.lists(WORDS, min_size=1, max_size=3))
    def store_fact(self, path, scope, words):
        text = " ".join(words)
        versions = self.model.setdefault((scope, path), [])
        written = put(self.store, path, text, scope=scope)
        assert written.duplicate == (bool(versions) and versions[-1] == text)
        if not written.duplicate:
            versions.append(text)
        assert written.entry.version == len(versions)

    def key(self, scope, path):
        return stable_hash("fact", scope.kind, scope.owner, path)

    @rule(path=PATHS, scope=SCOPES)
    def forget(self, path, scope):
        known = self.model.pop((scope, path), None)
        assert self.store.forget([self.key(scope, path)]).entries == (known is not None)

    @rule(path=PATHS, scope=SCOPES, number=st.integers(1, 3))
    def redact(self, path, scope, number):
        versions = self.model.get((scope, path), [])
        known = number <= len(versions) and versions[number - 1] is not None
        assert self.store.redact(self.key(scope, path), number).entries == known
        if known:
            versions[number - 1] = None

    @rule()
    def reopen(self):
        self.store.close()
        self.store = MemoryStore(self.path, clock=lambda: 1_000_000.0)

    @invariant()
    def versions_match(self):
        for (scope, path), versions in self.model.items():
            history = self.store.history(self.key(scope, path))
            assert [entry.text for entry in history] == [text or "" for text in versions]
            assert [entry.redacted for entry in history] == [text is None for text in versions]

    @invariant()
    def current_entries_match(self):
        current = {
            key: versions[-1] for key, versions in self.model.items() if versions[-1:] != [None]
        }
        listed = {(entry.scope, entry.path): entry.text for entry in self.store.entries()}
        assert listed == current

    @rule(word=WORDS, scope=SCOPES)
    def recalled(self, word, scope):
        found = recall(self.store, word, scopes=[scope], now=1_000_000.0)
        texts = {one.entry.path: one.entry.text for one in found.memories}
        assert texts == {
            path: versions[-1]
            for (owner, path), versions in self.model.items()
            if owner == scope and versions[-1] is not None and word in versions[-1]
        }


def test_the_store_behaves_as_a_dictionary_of_versions(tmp_path, monkeypatch):
    from hypothesis.stateful import run_state_machine_as_test

    monkeypatch.setenv("PYTEST_MEMORY_FOLDER", str(tmp_path))
    run_state_machine_as_test(
        MemoryModel, settings=settings(max_examples=15, stateful_step_count=15)
    )


def test_the_file_is_private(store, tmp_path):
    put(store, "a", "text")
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("remove", ["forget", "redact", "redact_version"])
def test_removed_text_leaves_no_bytes_in_the_file(store, tmp_path, remove):
    for number in range(40):
        put(store, f"filler/{number}", f"ordinary words number {number} about gardens and rivers")
    first = put(store, "plan", "the zanzibarquokka project moves to Reykjavikharbour").entry
    put(store, "plan", "the second version")
    store.set_vectors("m", {})
    with closing(
        sqlite3.connect(tmp_path / "memory.db")
    ) as other:  # the log is written, not only cached
        other.execute("SELECT 1 FROM entry").fetchall()
    assert b"zanzibarquokka" in file_bytes(tmp_path)
    result = {
        "forget": lambda: store.forget([first.id]),
        "redact": lambda: store.redact(first.id),
        "redact_version": lambda: store.redact(first.id, 1),
    }[remove]()
    assert (result.entries, result.purged) == ({"redact": 2}.get(remove, 1), True)
    data = file_bytes(tmp_path).lower()
    for part in (b"zanzibarquokka", b"zanzibar", b"quokka", b"reykjavikharbour", b"zan", b"okk"):
        assert part not in data
    kept = [entry.text for entry in store.history(first.id)]
    assert (
        kept
        == {"forget": [], "redact": ["", ""], "redact_version": ["", "the second version"]}[remove]
    )


def test_secrets_are_not_stored(store, tmp_path):
    written = put(store, "db", "url postgres://bob:s3cr3tpw9@db/x and card 4111 1111 1111 1111")
    assert written.removed == ("card", "secret")
    assert written.entry.text == "url postgres://bob:[secret removed]@db/x and card [card removed]"
    assert b"s3cr3tpw9" not in file_bytes(tmp_path)
    with pytest.raises(InvalidTask, match="path"):
        put(store, "key/AKIAQWERTYUIOPASDFGH", "x")


def test_a_repeated_fact_is_a_duplicate_unless_its_labels_grow(store):
    first = put(store, "a", "Blue  paint")
    assert put(store, "a", "blue paint").duplicate
    assert not put(store, "b", "blue paint").duplicate
    tainted = put(store, "a", "blue paint", taint=UNTRUSTED)
    assert (tainted.duplicate, tainted.entry.version) == (False, 2)
    assert tainted.entry.taint == UNTRUSTED
    assert first.entry.id == tainted.entry.id


def test_an_equal_episode_is_a_duplicate(store):
    episode = Episode("fix it", "ok", lesson="run the tests", tokens=10, trace="run-1")
    first = store.store_episode(episode, scope=PROJECT, origin="coder")
    again = store.store_episode(
        Episode("fix it", "ok", lesson="run the tests", trace="run-2"), scope=PROJECT, origin="x"
    )
    assert again.duplicate
    assert again.entry == first.entry
    assert first.entry.data == {"tokens": 10, "seconds": 0.0, "trace": "run-1"}
    assert [entry.kind for entry in store.entries([PROJECT], kind=MemoryKind.EPISODE)] == [
        "episode"
    ]


@pytest.mark.parametrize(
    ("path", "text", "importance"),
    [("", "x", 0.5), ("a", " ", 0.5), ("a", "x" * 20_001, 0.5), ("a", "x", 1.5),
     ("a\nb", "x", 0.5), ("p" * 201, "x", 0.5)],
)  # fmt: skip
def test_values_out_of_range_are_refused(store, path, text, importance):
    with pytest.raises(InvalidTask):
        put(store, path, text, importance=importance)


def test_the_export_has_all_versions(store):
    put(store, "a", "one")
    put(store, "a", "two", taint=UNTRUSTED)
    exported = [entry_fields(entry) for entry in store.export()]
    assert [(one["path"], one["version"], one["text"], one["taint"]) for one in exported] == [
        ("a", 1, "one", ["trusted"]),
        ("a", 2, "two", ["untrusted"]),
    ]


def test_a_newer_database_and_a_broken_file_are_refused(tmp_path):
    newer = tmp_path / "newer.db"
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(MemoryStoreError, match="newer"):
        MemoryStore(newer)
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database at all" * 100)
    with pytest.raises(MemoryStoreError, match="cannot be"):
        MemoryStore(broken)


def test_ids_are_the_same_in_every_process():
    code = (
        "from agents.memory.entry import stable_hash; print(stable_hash('fact', 'user', '', 'a/b'))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert runs == {stable_hash("fact", "user", "", "a/b")}


WRITER = """
import sys
from pathlib import Path
from agents.memory.entry import USER
from agents.memory.store import MemoryStore
store = MemoryStore(Path(sys.argv[1]))
number = 0
while True:
    store.store_fact(f"n/{number % 7}", f"fact number {number}", scope=USER, origin="user")
    if number % 5 == 4:
        store.forget([store.entries()[0].id])
    print(number, flush=True)
    number += 1
"""


@pytest.mark.parametrize("after", [1, 13, 37])
def test_a_killed_writer_loses_nothing_that_it_reported(tmp_path, after):
    path = tmp_path / "memory.db"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(after):
        last = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    reported = [last, *map(int, process.stdout.read().split())]
    process.wait()
    with MemoryStore(path) as store:
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            for index in ("words", "trigrams"):
                connection.execute(f"INSERT INTO {index} ({index}) VALUES ('integrity-check')")
                (indexed,) = connection.execute(f"SELECT count(*) FROM {index}").fetchone()
                assert indexed == len(store.entries())
        last = max(reported)
        found = recall(store, f"number {last}", scopes=None, now=0.0)
        texts = [one.entry.text for one in found.memories]
        # Every fifth write deletes what it wrote; all others are there.
        assert (f"fact number {last}" in texts) == (last % 5 != 4)


def test_two_processes_share_the_file(store, tmp_path):
    with MemoryStore(tmp_path / "memory.db") as other:
        put(store, "a", "written here")
        put(other, "b", "written there")
        assert {entry.path for entry in store.entries()} == {"a", "b"}
        assert {entry.path for entry in other.entries()} == {"a", "b"}
