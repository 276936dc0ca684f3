"""kill -9 at random moments of an index run: afterwards everything is as after an undisturbed run."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.retrieval.library.library import Library
from tests.fakes.word_embedder import WordEmbedder

_ROOT = Path(__file__).parents[3]
_QUERIES = ("word3 of part 7", "number 12", "second version", "part")


def write_documents(folder: Path, version: str) -> None:
    """Many small files and a few long ones, some of which differ between versions."""
    folder.mkdir(exist_ok=True)
    for n in range(60):
        text = f"# File number {n}\n\nwith word{n % 7} of part {n % 11}.\n"
        (folder / f"{n:02}.md").write_text(text + (f"\n{version} version\n" if n % 3 == 0 else ""))
    for n in range(3):
        parts = (
            f"# Part {m}\n\n" + f"word{m} {version if m == 5 else ''} " * 120 for m in range(30)
        )
        (folder / f"long{n}.md").write_text("\n\n".join(parts))


def results(library: Path) -> list[object]:
    """What searches and lists return, but for ids and times."""
    with Library(library, WordEmbedder()) as opened:
        collection = opened.open("docs")
        assert collection.doctor().damage == []
        documents = [
            (one.path, one.status, one.content_hash, one.chunks, one.size)
            for one in collection.documents()
        ]
        found = [
            sorted(
                (-round(one.score, 9), one.file, one.start, one.end, one.text)
                for one in collection.search(query, k=300, mode=mode)
            )
            for query in _QUERIES
            for mode in ("lexical", "dense")
        ]
        return [documents, found]


def index(library: Path, folder: Path, kill_after_s: float | None = None) -> float | None:
    """Run an indexing process; returns how long it took, or None if it was killed."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.retrieval.library.index_process", library, folder],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        started = time.monotonic()
        try:
            process.wait(timeout=kill_after_s)
        except subprocess.TimeoutExpired:
            process.kill()
            return None
        assert process.returncode == 0
        return time.monotonic() - started


def check_kills(tmp_path: Path, kills: int, seed: int) -> None:
    """Kill runs over two versions of the documents, then compare with undisturbed runs."""
    moments = random.Random(seed)
    folder = tmp_path / "folder"
    for name in ("whole", "killed"):
        with Library(tmp_path / name, WordEmbedder()) as library:
            library.create("docs")
    killed = 0
    for version in ("first", "second"):
        write_documents(folder, version)
        if version == "second":
            (folder / "07.md").unlink()
        duration = index(tmp_path / "whole", folder)
        assert duration is not None
        for _ in range(kills // 2 + kills % 2):
            killed += index(tmp_path / "killed", folder, moments.uniform(0, duration)) is None
        index(tmp_path / "killed", folder)
        assert results(tmp_path / "killed") == results(tmp_path / "whole")
    assert killed  # else nothing was tried


def test_a_few_kills(tmp_path):
    check_kills(tmp_path, 4, seed=5)


@pytest.mark.soak
def test_fifty_kills(tmp_path):
    check_kills(tmp_path, 50, seed=23)
