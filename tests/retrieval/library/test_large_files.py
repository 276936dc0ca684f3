"""Files beyond the limit of the parsers: texts are read in segments, others are refused unread."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.retrieval.indexing import batches, index_run
from engine.retrieval.library.library import Library
from engine.retrieval.parsing.large_text import LargeText
from engine.retrieval.parsing.parser_limits import ParserLimits
from engine.retrieval.parsing.parser_pool import ParserPool
from tests.fakes.word_embedder import WordEmbedder

_ROOT = Path(__file__).parents[3]
_LIMITS = ParserLimits(file_bytes=10_000, segment_bytes=8_000)


@pytest.fixture
def library(tmp_path, embedder, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_CHUNKS", 4)
    with Library(
        tmp_path / "retrieval", embedder, open_parser=lambda: ParserPool(1, _LIMITS)
    ) as library:
        yield library


@pytest.fixture
def log(tmp_path):
    """60 kB, 6 times the limit."""
    path = tmp_path / "day.log"
    path.write_text("".join(f"{n:05} request number{n} was answered.\n" for n in range(1600)))
    return path


def test_a_long_log_is_found_and_its_spans_are_exact(collection, log):
    report = collection.add([log])

    assert (report.added, report.failed) == (1, [])
    assert report.chunks > 40
    for n in (0, 777, 1599):
        (passage,) = collection.search(f"number{n}", k=1, mode="lexical")
        assert log.read_bytes()[passage.start : passage.end].decode() == passage.text
        assert f"number{n} " in passage.text
        assert passage.line <= n + 1 < passage.line + len(passage.text.splitlines()) + 1
        assert f"number{n} " in collection.section(passage)
    assert collection.refresh().unchanged == 1
    assert collection.doctor().damage == []
    assert collection.doctor().outdated == []


def test_a_log_that_has_grown_costs_its_new_lines(collection, log, embedder):
    collection.add([log])
    embedder.texts.clear()
    with log.open("a") as file:
        file.write("A new line about a wombat.\n")

    report = collection.refresh()

    assert (report.updated, report.embedded) == (1, len(embedder.texts))
    assert report.embedded <= 2
    assert "wombat" in collection.search("wombat", k=1, mode="lexical")[0].text


def test_an_interrupted_run_goes_on_with_what_is_stored(collection, log, embedder, monkeypatch):
    monkeypatch.setattr(index_run, "COMMIT_CHUNKS", 4)
    steps = []

    report = collection.add([log], progress=steps.append, cancelled=lambda: len(steps) > 4)

    assert report.cancelled
    assert steps[-1].files_done == 0
    assert 0 < steps[-1].bytes_done < log.stat().st_size
    assert steps[-1].seconds_left is not None
    assert collection.search("number0", mode="lexical") == []
    embedder.texts.clear()
    again = collection.add([log])
    assert again.embedded == len(embedder.texts) == again.chunks - report.chunks
    assert collection.search("number0", mode="lexical")


def test_a_file_that_changes_while_it_is_read_is_listed_and_leaves_nothing(
    tmp_path, collection, log, folder, monkeypatch
):
    segment = LargeText.segment

    def change(self, start, *open_parts):
        if start > 20_000:
            log.write_text("Something else.\n" * 5000)
        return segment(self, start, *open_parts)

    with monkeypatch.context() as patch:
        patch.setattr(LargeText, "segment", change)
        report = collection.add([log, folder])

    assert [(one.path, one.reason) for one in report.failed] == [
        (str(log), "It has changed while it was read.")
    ]
    assert report.added == 2
    assert collection.search("number0", mode="lexical") == []
    assert b"number77 " not in (tmp_path / "retrieval" / "retrieval.db").read_bytes()
    assert collection.refresh().updated == 1
    assert collection.search("Something", k=1, mode="lexical")[0].file == str(log)


def bytes_read() -> int:
    """By this process, from files and pipes."""
    fields = Path("/proc/self/io").read_text().split()
    return int(fields[fields.index("rchar:") + 1])


@pytest.mark.parametrize(
    ("name", "head", "reason"),
    [
        ("zeros.txt", b"", "It is a binary file of an unknown type."),
        ("a.json", b'{"a": [', "It has 1,073,741,824 bytes; files up to 10,000 bytes are read."),
        ("a.pdf", b"%PDF-1.7\n", "It has 1,073,741,824 bytes; files up to 10,000 bytes are read."),
        ("a.bin", b"\x7fELF\0", "It is a program."),
    ],
)
def test_a_gigabyte_of_another_type_is_refused_unread(collection, folder, name, head, reason):
    with (folder / name).open("wb") as file:
        file.write(head)
        file.truncate(1 << 30)
    before = bytes_read()

    report = collection.add([folder])

    assert bytes_read() - before < 4 << 20
    assert [(one.path, one.reason) for one in report.failed] == [(str(folder / name), reason)]
    assert report.added == 2
    assert collection.doctor().outdated == []


@pytest.mark.soak
def test_200_mb_are_indexed_in_bounded_memory(tmp_path):
    path = tmp_path / "large.log"
    with path.open("w") as file:
        for n in range(3_000_000):
            file.write(
                f"{n:08} the request of client{n % 977} for page {n * 7919 % 100_003} was answered in time\n"
            )
    assert path.stat().st_size > 200_000_000
    with Library(tmp_path / "library", WordEmbedder()) as library:
        library.create("docs")

    done = subprocess.run(
        [
            sys.executable, "-m", "tests.retrieval.library.peak_memory_process",
            tmp_path / "library", path,
        ],
        cwd=_ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip

    chunks, mebibytes = map(int, done.stdout.split())
    assert chunks > 150_000
    print(f"{chunks:,} chunks, at most {mebibytes:,} MiB")
    assert mebibytes < 700
    with Library(tmp_path / "library", WordEmbedder()) as library:
        found = library.open("docs").search("02999999", k=1, mode="lexical")
        assert os.path.basename(found[0].file) == "large.log"
