"""The protocol between `benchmarks/retrieval.py` and the process of a peer: JSON lines, one call each.

A call names a method of the peer and its arguments. The answer is what the method returns, with `seconds`,
the time by the process's own clock, and `cpu_seconds`, the CPU time of all its threads and of the processes
that it has waited for. Texts and vectors travel as files. Only the standard library and numpy are imported.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 384
MOST_TOKENS = 256
BATCH = 32


class Peer:
    """What a peer answers. A method that it lacks is refused by name.

    Attributes:
        name: as printed.
        modes: how it searches: `dense`, `hybrid`, `lexical`.
    """

    name = ""
    modes: tuple[str, ...] = ()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts with its usual settings: `[texts, 384]`, each of length 1."""
        raise NotImplementedError

    def index(
        self, texts: Sequence[str], vectors: NDArray[np.float32] | None, folder: Path
    ) -> None:
        """Replace the index by these texts, numbered from 0.

        Args:
            vectors: their vectors; None to embed them.
            folder: an empty folder for its files.
        """
        raise NotImplementedError

    def search(self, query: str, k: int, mode: str) -> list[int]:
        """Numbers of the best chunks, best first."""
        raise NotImplementedError

    def pipeline(self, files: Sequence[Path], folder: Path, settings: str) -> int:
        """Read files and make them searchable with its own parser and splitter; returns the chunks."""
        raise NotImplementedError

    def know_queries(self, queries: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Use these vectors for these queries instead of embedding them."""
        raise NotImplementedError

    def close(self) -> None:
        """Free what `index` and `pipeline` have made."""


class Timed:
    """Measures a block.

    Attributes:
        taken: `seconds` and `cpu_seconds`, after the block.
    """

    taken: dict[str, float]

    def __enter__(self) -> "Timed":
        self._began, self._cpu_began = time.perf_counter(), cpu_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        seconds, cpu = time.perf_counter() - self._began, cpu_seconds() - self._cpu_began
        self.taken = {"seconds": seconds, "cpu_seconds": cpu}


def cpu_seconds() -> float:
    """CPU time so far of this process and of the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def serve(peer: Peer, version: str) -> None:
    """Answer calls until standard input ends."""
    # Libraries write to standard output, so answers use a duplicate and descriptor 1 becomes stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(what: Mapping[str, object]) -> None:
        print(json.dumps(what), file=answers, flush=True)

    answer({"peer": peer.name, "version": version, "modes": peer.modes})
    for line in sys.stdin:
        call = json.loads(line)
        try:
            answer(CALLS[call.pop("call")](peer, **call))
        except NotImplementedError:
            answer({"refused": f"{peer.name} does not do this"})


def read_texts(path: str) -> list[str]:
    """The texts of a file with one JSON string a line."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _embed(peer: Peer, texts: str, out: str | None = None) -> dict[str, Any]:
    found = read_texts(texts)
    with Timed() as timed:
        vectors = peer.embed(found)
    if out:
        np.save(out, vectors)
    return timed.taken


def _index(peer: Peer, texts: str, folder: str, vectors: str | None = None) -> dict[str, Any]:
    found = read_texts(texts)
    given = np.load(vectors) if vectors else None
    with Timed() as timed:
        peer.index(found, given, Path(folder))
    return timed.taken


def _search(peer: Peer, queries: list[str], k: int, mode: str) -> dict[str, Any]:
    ids, taken = [], []
    for query in queries:
        with Timed() as timed:
            ids.append([int(one) for one in peer.search(query, k, mode)])
        taken.append(timed.taken)
    return {
        "ids": ids,
        "seconds": [one["seconds"] for one in taken],
        "cpu_seconds": [one["cpu_seconds"] for one in taken],
    }


def _know_queries(peer: Peer, texts: str, vectors: str) -> dict[str, Any]:
    peer.know_queries(read_texts(texts), np.load(vectors))
    return {}


def _pipeline(peer: Peer, files: list[str], folder: str, settings: str) -> dict[str, Any]:
    with Timed() as timed:
        chunks = peer.pipeline([Path(file) for file in files], Path(folder), settings)
    return {**timed.taken, "chunks": chunks}


def _close(peer: Peer) -> dict[str, Any]:
    peer.close()
    return {}


CALLS = {
    "embed": _embed,
    "index": _index,
    "search": _search,
    "know_queries": _know_queries,
    "pipeline": _pipeline,
    "close": _close,
}
