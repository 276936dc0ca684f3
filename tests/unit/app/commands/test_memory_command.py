"""`pravaha memory`, over a database in a folder of its own."""

import json
import stat

import pytest
from typer.testing import CliRunner

from agents.memory.entry import USER, Scope, ScopeKind
from agents.memory.store import MemoryStore
from agents.tools.tool import Taint
from app.cli import cli

UNKNOWN = "0" * 24


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("PRAVAHA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PRAVAHA_CACHE_DIR", str(tmp_path / "cache"))  # no embedding model
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data" / "memory.db"


@pytest.fixture
def pravaha(data):
    return lambda *arguments: CliRunner().invoke(cli, ["memory", *arguments])


@pytest.fixture
def ids(data):
    with MemoryStore(data) as store:
        untrusted = frozenset({Taint.UNTRUSTED})
        project = Scope(ScopeKind.PROJECT, "/work")
        return [
            store.store_fact("build", "run make test", scope=USER, origin="user").entry.id,
            store.store_fact(
                "web", "amber \x1b[31m light", scope=project, origin="coder", taint=untrusted
            ).entry.id,
        ]


def test_list_shows_the_newest_first_as_json_and_as_a_table(pravaha, ids):
    listed = json.loads(pravaha("list", "--json").stdout)["memories"]
    assert [one["path"] for one in listed] == ["web", "build"]
    assert listed[0]["taint"] == ["untrusted"]
    table = pravaha("list").stdout
    assert ids[0] in table
    assert "coder (untrusted)" in table
    assert "\x1b" not in table


def test_list_selects_scope_and_kind(pravaha, ids):
    assert [
        one["path"]
        for one in json.loads(pravaha("list", "--scope", "user", "--json").stdout)["memories"]
    ] == ["build"]
    assert json.loads(pravaha("list", "--kind", "episode", "--json").stdout) == {"memories": []}
    assert len(json.loads(pravaha("list", "--limit", "1", "--json").stdout)["memories"]) == 1


def test_search_works_without_embeddings_and_says_so(pravaha, ids):
    found = json.loads(pravaha("search", "amber", "--json").stdout)
    assert [one["path"] for one in found["memories"]] == ["web"]
    assert found["memories"][0]["score"] > 0
    assert "not installed" in found["notes"][0]
    assert "Nothing is remembered" in pravaha("search", "zebra").stdout


def test_forget_removes_the_entry(pravaha, ids, data):
    assert pravaha("forget", ids[0]).exit_code == 0
    assert [one["path"] for one in json.loads(pravaha("list", "--json").stdout)["memories"]] == [
        "web"
    ]
    assert b"run make test" not in b"".join(file.read_bytes() for file in data.parent.iterdir())


def test_forgetting_an_unknown_id_changes_nothing(pravaha, ids):
    result = pravaha("forget", ids[0], UNKNOWN)
    assert result.exit_code == 1
    assert UNKNOWN in result.stderr
    assert len(json.loads(pravaha("list", "--json").stdout)["memories"]) == 2


def test_redaction_keeps_the_record(pravaha, ids):
    pravaha("forget", "--redact", ids[0])
    [line] = [
        one
        for one in map(json.loads, pravaha("export").stdout.splitlines())
        if one["path"] == "build"
    ]
    assert (line["text"], line["redacted"]) == ("", True)


def test_export_writes_a_private_file(pravaha, ids, tmp_path):
    assert pravaha("export", str(tmp_path / "out.jsonl")).exit_code == 0
    file = tmp_path / "out.jsonl"
    assert [json.loads(line)["path"] for line in file.read_text().splitlines()] == ["build", "web"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_unusable_database_is_one_sentence(pravaha, data):
    data.parent.mkdir()
    data.write_bytes(b"no database" * 500)
    result = pravaha("list")
    assert result.exit_code == 1
    assert result.stderr.startswith("pravaha: The memory ")
    assert len(result.stderr.splitlines()) == 1
