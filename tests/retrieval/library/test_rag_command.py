"""`pravaha rag`: create, add, list, show, search, refresh, watch, remove and doctor."""

import json
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import cli
from app.commands.rag_progress import files_text, rate_text
from engine.retrieval.indexing import batches
from engine.retrieval.indexing.report import IndexProgress
from tests.fakes.word_embedder import WordEmbedder


class _Encoder(WordEmbedder):
    """Interrupts the command at a call, as Ctrl+C does."""

    def __init__(self):
        super().__init__()
        self.fetched = []
        self.interrupt_at = -1
        self.calls = 0

    def submit(self, texts, *, truncate=None):
        self.calls += 1
        if self.calls == self.interrupt_at:
            signal.raise_signal(signal.SIGINT)
        return super().submit(texts, truncate=truncate)

    def close(self):
        pass


@pytest.fixture
def encoder(monkeypatch, tmp_path):
    encoder = _Encoder()
    monkeypatch.setattr("app.runtime.opening.embedder", lambda settings, **_: encoder)
    monkeypatch.setattr(
        "app.runtime.collections.fetch_encoder",
        lambda settings, progress: encoder.fetched.append(1),
    )
    monkeypatch.setenv("PRAVAHA_DATA_DIR", str(tmp_path / "data"))
    return encoder


@pytest.fixture
def rag(encoder):
    def run(*arguments, status=0, **options):
        done = CliRunner().invoke(cli, ["rag", *map(str, arguments)], **options)
        assert done.exit_code == status, done.output
        return done

    return run


def test_from_an_empty_library_to_a_passage_that_opens(rag, folder):
    assert "create one" in rag("list").output
    assert "Created docs" in rag("create", "docs").output
    assert "is empty" in rag("show", "docs").output
    assert rag("add", "docs", folder).output.startswith("2 added; ")

    found = json.loads(rag("search", "docs", "heron fish", "-k", 1, "--json").stdout)["results"]

    (best,) = found
    assert set(best) >= {"file", "start", "end", "text", "score"}
    assert Path(best["file"]).read_bytes()[best["start"] : best["end"]].decode() == best["text"]
    text = rag("search", "docs", "heron fish", "-k", 1).output
    assert f"{best['file']}:1" in text
    assert "patiently" in text
    assert "animals.md" in rag("show", "docs").output


def test_the_embedding_model_is_fetched_by_commands_that_embed(rag, encoder, folder):
    rag("create", "docs")
    rag("search", "docs", "x", "--mode", "lexical")
    rag("list")
    assert not encoder.fetched

    rag("add", "docs", folder)
    rag("search", "docs", "x")
    assert len(encoder.fetched) == 2


def test_list_and_show_as_json(rag, folder):
    rag("create", "docs", "--vectors", "int8")
    (folder / "bad.txt").write_bytes(b"\0\1\2" * 40)
    rag("add", "docs", folder, "--attribute", "year=2026", "--attribute", "draft=true")

    (collection,) = json.loads(rag("list", "--json").stdout)["collections"]
    assert (collection["name"], collection["documents"], collection["failed"]) == ("docs", 2, 1)
    assert collection["vectors"] == "int8"
    assert collection["store"] == "auto"
    documents = json.loads(rag("show", "docs", "--json").stdout)["documents"]
    assert [one["status"] for one in documents] == ["ready", "failed", "ready"]
    assert documents[0]["attributes"] == {"year": 2026.0, "draft": True}
    assert documents[1]["reason"]


def test_unreadable_files_are_listed_and_stop_nothing(rag, folder):
    rag("create", "docs")
    (folder / "bad.txt").write_bytes(b"\0\1\2" * 40)

    done = rag("add", "docs", folder)

    assert "2 added, 1 unreadable" in done.stdout
    assert f"{folder / 'bad.txt'}: It " in done.stderr


def test_excluded_files_are_left_out(rag, folder):
    rag("create", "docs")

    assert rag("add", "docs", folder, "--exclude", "*.txt").output.startswith("1 added; ")


def test_standard_input_is_a_document(rag):
    rag("create", "docs")

    rag("add", "docs", "-", "--name", "letter.txt", input="Dear quokka, come home.")

    (best,) = json.loads(rag("search", "docs", "quokka", "--json").stdout)["results"]
    assert Path(best["file"]).name == "letter.txt"
    assert Path(best["file"]).read_text() == "Dear quokka, come home."


def test_refresh_tells_what_changed(rag, folder):
    rag("create", "docs")
    rag("add", "docs", folder)
    (folder / "animals.md").unlink()
    (folder / "new.txt").write_text("new")

    report = json.loads(rag("refresh", "docs", "--json").stdout)["runs"][0]

    assert (report["added"], report["removed"], report["unchanged"]) == (1, 1, 1)


def test_an_interrupted_add_goes_on_from_there(rag, encoder, folder, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_CHUNKS", 2)
    for n in range(20):
        (folder / f"{n:02}.txt").write_text(f"number{n}")
    rag("create", "docs")
    encoder.interrupt_at = 6

    done = rag("add", "docs", folder, status=130)

    assert "the same command goes on from here" in done.stderr
    before = json.loads(rag("list", "--json").stdout)["collections"][0]["documents"]
    assert 0 < before < 22
    assert rag("add", "docs", folder).stdout.startswith(f"{22 - before} added, {before} unchanged")


def test_watch_ends_by_an_interrupt(rag, encoder, folder):
    rag("create", "docs")
    rag("watch", "docs", status=1)
    rag("add", "docs", folder)
    (folder / "animals.md").write_text("changed")
    encoder.calls, encoder.interrupt_at = 0, 1

    assert f"Watching {folder}" in rag("watch", "docs").stdout


def test_remove_a_document_and_a_collection(rag, folder):
    rag("create", "docs")
    rag("add", "docs", folder)

    assert rag("remove", "docs", folder / "animals.md").output == "Removed 1 document.\n"
    assert rag("remove", "docs").output == "Removed docs.\n"
    assert "no collection docs" in rag("search", "docs", "x", status=1).stderr


def test_doctor_reports_and_fails_on_damage(rag, folder, tmp_path):
    rag("create", "docs")
    rag("add", "docs", folder)
    (folder / "animals.md").write_text("changed")

    done = rag("doctor", "docs")
    assert f"outdated: {folder / 'animals.md'}" in done.output
    assert "No damage." in done.output

    (tmp_path / "data" / "retrieval" / "1.vectors").unlink()
    assert "2 of 2 vectors were computed anew." in rag("doctor", "docs", status=1).output
    assert "No damage." in rag("doctor", "docs").output
    (tmp_path / "data" / "retrieval" / "1-1.vectors").unlink()
    report = json.loads(rag("doctor", "docs", "--json", status=1).stdout)
    assert (len(report["damage"]), report["lost_vectors"], report["restored_vectors"]) == (1, 2, 2)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("create", "a b"), 1, "cannot be named"),
        (("add", "docs", "/nowhere"), 1, "There is no file /nowhere"),
        (("add", "docs", ".", "--attribute", "x"), 1, "'x' is not KEY=VALUE"),
        (("add", "none", "."), 1, "There is no collection none"),
        (("search", "docs", "x", "--mode", "other"), 2, "other"),
        (("search", "docs", "x", "-k", "0"), 2, "or equal to 1"),
        (("remove", "docs", "/nowhere"), 1, "has no document /nowhere"),
    ],
)
def test_bad_input_is_one_sentence(rag, arguments, status, message):
    rag("create", "docs")

    done = rag(*arguments, status=status)

    assert message in done.stderr
    assert "Traceback" not in done.output


def test_a_document_cannot_control_the_terminal(rag, tmp_path):
    path = tmp_path / "evil.txt"
    path.write_text("quokka \x1b]0;title\x07 \x1b[2J end")
    rag("create", "docs")
    rag("add", "docs", path)

    assert "\x1b" not in rag("search", "docs", "quokka").output


def test_the_bar_tells_files_rate_and_time_left():
    event = IndexProgress(
        files_done=5, files=1200, bytes_done=1000, bytes=8000, chunks=3000, failed=2, seconds=12.0
    )

    assert files_text(event) == "5 of 1,200 files, 2 unreadable"
    assert rate_text(event) == "3,000 chunks, 250/s, 1:24 left"
    assert event.seconds_left == pytest.approx(84)

    start = IndexProgress(
        files_done=0, files=1, bytes_done=0, bytes=9, chunks=0, failed=0, seconds=0.0
    )
    assert rate_text(start) == "0 chunks, 0/s"


def test_a_store_is_chosen_when_a_collection_is_created(rag, monkeypatch):
    rag("create", "small", "--store", "exact")
    assert json.loads(rag("list", "--json").stdout)["collections"][0]["store"] == "exact"

    assert (
        "needs the name of the environment"
        in rag("create", "a", "--store", "pgvector", status=1).output
    )
    monkeypatch.setenv("MY_DSN", "postgresql://me:secret@127.0.0.1:1/vectors")
    output = rag("create", "a", "--store", "pgvector", "--dsn-env", "MY_DSN", status=1).output
    assert "The PostgreSQL database vectors at 127.0.0.1 cannot be used" in output
    assert "secret" not in output
    assert len(json.loads(rag("list", "--json").stdout)["collections"]) == 1
