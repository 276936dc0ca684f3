"""Stages *embedding*, *indexing* and *latency* of `benchmarks/retrieval.py`, in turns with the peers."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.indexed_texts import IndexedTexts, index_files, ours, reference_vectors
from benchmarks.machine import say
from benchmarks.retrieval_peers import (
    EMBEDDING,
    OURS,
    OURS_INT8,
    SEARCHING,
    Peers,
    RetrievalProcess,
)
from benchmarks.search_quality import DEPTH

LLAMA_INDEX_SPLITTERS = ("256 tokens", "default")
Taken = Mapping[str, float]
"""`seconds` and `cpu_seconds` of a call, and what else it answered."""

SLOW_S = 20.0
"""A peer whose queries take longer than this for each turn so far is asked no more of them."""


def measure_embedding(
    peers: Peers, texts: Sequence[str], work: Path, *, rounds: int
) -> dict[str, Any]:
    """Texts per second from strings to vectors, and how near the vectors are to sentence-transformers'."""
    path = write_texts(work / "embedding.texts", texts)
    runs: dict[str, list[Taken]] = defaultdict(list)
    vectors: dict[str, np.ndarray] = {}
    for turn in range(rounds):
        names = list(EMBEDDING)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            process = peers.started(EMBEDDING[name])
            if process is None:
                continue
            out = work / "embedding.npy"
            if name not in vectors:
                # The first call also loads weights and warms up.
                process.call("embed", texts=str(path), out=str(out))
                vectors[name] = np.load(out)
            runs[name].append(process.call("embed", texts=str(path)))
            say(f"{name}: {len(texts) / runs[name][-1]['seconds']:.1f} texts/s")
    reference = vectors.get("sentence-transformers")
    return {
        "texts": len(texts),
        "bytes": sum(len(text.encode()) for text in texts),
        "figures": {
            name: rates(len(texts), taken, "texts/s")
            | ({} if reference is None else nearness(vectors[name], reference))
            for name, taken in runs.items()
        },
        "ratios": ratios({name: fastest(taken) for name, taken in runs.items()}),
    }


def measure_indexing(
    peers: Peers, files: Sequence[Path], pages: Sequence[Path], work: Path, *, rounds: int
) -> dict[str, Any]:
    """Chunks and bytes per second from files to a searchable index.

    Ours reads, splits, embeds, stores and syncs. Peers without a reader and splitter of their own get our
    chunks, so their time lacks those steps. llama-index reads and splits by itself.
    """
    indexed = index_files(peers, files, work, "indexing")  # warms up, and makes the peers' chunks
    runs: dict[str, list[Taken]] = defaultdict(list)
    counts: dict[str, int] = {}

    def run(process: RetrievalProcess) -> None:
        for name, call in _indexing_calls(process, indexed, files).items():
            with tempfile.TemporaryDirectory(dir=work) as folder:
                answer = process.call(folder=folder, **call)
                process.call("close")
            runs[name].append(answer)
            counts[name] = answer.get("chunks", indexed.chunks)
            say(f"{name}: {counts[name] / answer['seconds']:.1f} chunks/s")

    for turn in range(rounds):
        peers.turns((OURS, OURS_INT8, *SEARCHING), run, turn)
    web = index_files(peers, pages, work, "pages")
    per_chunk = {
        name: {kind: seconds / counts[name] for kind, seconds in fastest(taken).items()}
        for name, taken in runs.items()
        if not name.endswith("default")
    }
    return {
        "files": len(files),
        "file bytes": indexed.file_bytes,
        "chunks": indexed.chunks,
        "figures": {
            name: rates(counts[name], taken, "chunks/s")
            | {"chunks": counts[name], "bytes/s": indexed.file_bytes / fastest(taken)["seconds"]}
            for name, taken in runs.items()
        },
        "ratios": ratios(per_chunk),
        "Pravāha, web pages": {
            "files": len(pages),
            "file bytes": web.file_bytes,
            "chunks/s": web.chunks / web.seconds,
            "bytes/s": web.file_bytes / web.seconds,
        },
    }


def measure_latency(
    peers: Peers,
    files: Sequence[Path],
    sample: IndexedTexts,
    queries: Sequence[str],
    work: Path,
    *,
    turns: int,
) -> dict[str, Any]:
    """Percentiles of a query's time at many chunks, one query at a time, from string to texts.

    The texts are real. The vectors of documents are stand-ins: those of `sample`, each with noise that
    depends on the text. Every peer gets the same. Queries are embedded by each peer itself, by ours in int8,
    as `pravaha rag` does.
    """
    process = ours(peers, OURS_INT8)
    process.call("stand_in", vectors=str(reference_vectors(peers, sample.texts, work)))
    indexed = index_files(peers, files, work, "latency", OURS_INT8)
    vectors = work / "latency.npy"
    process.call("vectors", texts=str(indexed.texts), out=str(vectors))
    process.call("embed_again")
    building = {"Pravāha, with reading and splitting": indexed.seconds}
    seconds: dict[str, list[float]] = defaultdict(list)
    cpu_seconds: dict[str, list[float]] = defaultdict(list)
    slow: set[str] = set()

    with tempfile.TemporaryDirectory(dir=work) as folders:

        def build(one: RetrievalProcess) -> None:
            say(f"{one.peer}: {indexed.chunks} chunks")
            folder = tempfile.mkdtemp(dir=folders)
            answer = one.call(
                "index", texts=str(indexed.texts), vectors=str(vectors), folder=folder
            )
            building[one.peer] = answer["seconds"]
            for mode in one.modes:
                one.call("search", queries=list(queries[:2]), k=DEPTH, mode=mode)

        def ask(one: RetrievalProcess) -> None:
            for mode in one.modes:
                name = f"{one.peer}, {mode}"
                if name in slow:
                    continue
                for query in mine:
                    answer = one.call("search", queries=[query], k=DEPTH, mode=mode)
                    seconds[name] += answer["seconds"]
                    cpu_seconds[name] += answer["cpu_seconds"]
                    if sum(seconds[name]) > SLOW_S * (turn + 1):
                        slow.add(name)
                        break

        peers.turns(SEARCHING, build)
        for mode in process.modes:
            process.call("search", queries=list(queries[:2]), k=DEPTH, mode=mode)
        say("measuring latency")
        for turn in range(turns):
            mine = list(queries[turn::turns])
            peers.turns((OURS_INT8, *SEARCHING), ask, turn)
        say("latency is measured")
    return {
        "chunks": indexed.chunks,
        "text bytes": indexed.text_bytes,
        "queries": len(queries),
        "building without embedding, s": building,
        "figures": {
            name: percentiles(taken) | {"median CPU ms": 1e3 * float(np.median(cpu_seconds[name]))}
            for name, taken in seconds.items()
        },
    }


def write_texts(path: Path, texts: Sequence[str]) -> Path:
    """Write texts as a file of JSON strings, one a line."""
    path.write_text("".join(json.dumps(text) + "\n" for text in texts))
    return path


def rates(count: int, runs: Sequence[Taken], unit: str) -> dict[str, Any]:
    """Best and median rate of equal runs, and the best rate per second of CPU time.

    The latter changes little when other processes compete for the cores.
    """
    seconds = [one["seconds"] for one in runs]
    return {
        unit: {
            "best": count / min(seconds),
            "median": count / float(np.median(seconds)),
            "per CPU second": count / fastest(runs)["cpu_seconds"],
        },
        "runs": len(runs),
    }


def fastest(runs: Sequence[Taken]) -> Taken:
    """The least time and the least CPU time over the runs."""
    return {kind: min(one[kind] for one in runs) for kind in ("seconds", "cpu_seconds")}


def nearness(vectors: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Least and mean cosine with the same texts' reference vectors; all have length 1."""
    cosines = (vectors * reference).sum(axis=1)
    return {"least cosine": float(cosines.min()), "mean cosine": float(cosines.mean())}


def ratios(least: Mapping[str, Taken]) -> dict[str, dict[str, float]]:
    """How many times as fast each of ours is as each peer, by time and by CPU time, for equal work."""
    mine = {name: taken for name, taken in least.items() if name.startswith("Pravāha")}
    return {
        f"{name} / {peer}": {kind: other[kind] / taken[kind] for kind in taken}
        for name, taken in mine.items()
        for peer, other in least.items()
        if peer not in mine
    }


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile in milliseconds."""
    p50, p95 = np.percentile(seconds, (50, 95))
    return {"p50 ms": 1e3 * float(p50), "p95 ms": 1e3 * float(p95), "queries": len(seconds)}


def _indexing_calls(
    process: RetrievalProcess, indexed: IndexedTexts, files: Sequence[Path]
) -> dict[str, dict[str, Any]]:
    """Name → the call that makes an index with embedding."""
    named = [str(file) for file in files]
    if process.peer.startswith("Pravāha"):
        return {process.peer: {"name": "pipeline", "files": named, "settings": "default"}}
    calls: dict[str, dict[str, Any]] = {
        f"{process.peer}, our chunks": {"name": "index", "texts": str(indexed.texts)}
    }
    if process.peer == "llama-index":
        for splitter in LLAMA_INDEX_SPLITTERS:
            calls[f"llama-index, {splitter}"] = {
                "name": "pipeline",
                "files": named,
                "settings": splitter,
            }
    return calls
