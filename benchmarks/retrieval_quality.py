"""Stage *quality* of `benchmarks/retrieval.py`: ranks of known items, for us and each peer."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.indexed_texts import (
    IndexedTexts,
    index_files,
    ours,
    reference_vectors,
    remembering,
)
from benchmarks.known_items import KINDS, KnownItem, known_items
from benchmarks.machine import say
from benchmarks.retrieval_peers import OURS_INT8, SEARCHING, Peers, RetrievalProcess
from benchmarks.search_quality import DEPTH, difference, figures, rank_of

Ranks = list[int | None]
OUR_PAIRS = (
    ("Pravāha, hybrid", "Pravāha, dense"),
    ("Pravāha, hybrid", "Pravāha, lexical"),
    ("Pravāha int8, hybrid", "Pravāha, hybrid"),
    ("Pravāha int8, dense", "Pravāha, dense"),
)
"""What each part adds, and what int8 costs."""


def measure_quality(
    peers: Peers, files: Sequence[Path], work: Path, *, per_kind: int, half: str
) -> dict[str, Any]:
    """Index the files, search for known items with every peer, and compare.

    Every peer gets the chunks that we made and the same vectors of them (`reference_vectors`); ours are
    embedded by our own executor.

    Args:
        per_kind: limit of queries per kind and half.
        half: `tuning`, `held_out` or `both`.
    """
    items = [one for one in known_items(files, per_kind) if half in (one.half, "both")]
    remembering(peers, work)
    indexed = index_files(peers, files, work, "quality")
    ours(peers).call("embed_again")
    say(f"{indexed.chunks} chunks, {len(items)} queries")
    ranks = _ranks(ours(peers), items, indexed)
    ranks |= _int8_ranks(peers, items, files, work)
    ranks |= _peer_ranks(peers, items, indexed, work)
    write_ranks(work / "quality.ranks", items, ranks)
    return {
        "files": len(files),
        "file bytes": indexed.file_bytes,
        "chunks": indexed.chunks,
        "texts": indexed.digest,
        "half": half,
        "queries": {kind: sum(one.kind == kind for one in items) for kind in KINDS},
        "items in a chunk": _reachable(items, indexed),
        "figures": {name: _by_kind(items, found) for name, found in ranks.items()},
        "compared": compared(ranks),
    }


def write_ranks(path: Path, items: Sequence[KnownItem], ranks: Mapping[str, Ranks]) -> None:
    """Write each query with its ranks, one JSON object a line, to see where a search fails."""
    with open(path, "w") as lines:
        for at, item in enumerate(items):
            found = {name: ranks_of_one[at] for name, ranks_of_one in ranks.items()}
            print(json.dumps({**asdict(item), "half": item.half, "ranks": found}), file=lines)


def compared(ranks: Mapping[str, Ranks]) -> dict[str, Any]:
    """Each of our modes less the best peer by nDCG@10, and less our own in other modes and precisions."""
    theirs = {name: found for name, found in ranks.items() if not name.startswith("Pravāha")}
    mine = {name: found for name, found in ranks.items() if name.startswith("Pravāha")}
    result: dict[str, Any] = {}
    if theirs:
        best = max(theirs, key=lambda name: figures(theirs[name])["nDCG@10"])
        result["best peer"] = best
        for name, found in mine.items():
            result[f"{name} less {best}"] = difference(found, theirs[best])
    for more, less in OUR_PAIRS:
        if more in mine and less in mine:
            result[f"{more} less {less}"] = difference(mine[more], mine[less])
    return result


def _int8_ranks(
    peers: Peers, items: Sequence[KnownItem], files: Sequence[Path], work: Path
) -> dict[str, Ranks]:
    """Ours with vectors computed in int8, as `pravaha rag add` does."""
    remembering(peers, work, OURS_INT8)
    indexed = index_files(peers, files, work, "quality-int8", OURS_INT8)
    process = ours(peers, OURS_INT8)
    process.call("embed_again")
    return _ranks(process, items, indexed)


def _peer_ranks(
    peers: Peers, items: Sequence[KnownItem], indexed: IndexedTexts, work: Path
) -> dict[str, Ranks]:
    queries = work / "quality.queries"
    queries.write_text("".join(json.dumps(one.query) + "\n" for one in items))
    vectors = reference_vectors(peers, indexed.texts, work)
    query_vectors = reference_vectors(peers, queries, work)
    found: dict[str, Ranks] = {}

    def search(process: RetrievalProcess) -> None:
        with tempfile.TemporaryDirectory(dir=work) as folder:
            process.call("index", texts=str(indexed.texts), vectors=str(vectors), folder=folder)
            process.call("know_queries", texts=str(queries), vectors=str(query_vectors))
            found.update(_ranks(process, items, indexed))
            process.call("close")

    peers.turns(SEARCHING, search)
    return found


def _ranks(
    process: RetrievalProcess, items: Sequence[KnownItem], indexed: IndexedTexts
) -> dict[str, Ranks]:
    ranks = {}
    for mode in process.modes:
        say(f"{process.peer}, {mode}")
        answer = process.call("search", queries=[one.query for one in items], k=DEPTH, mode=mode)
        ranks[f"{process.peer}, {mode}"] = [
            rank_of(item, [indexed.places[at] for at in ids])
            for item, ids in zip(items, answer["ids"], strict=True)
        ]
    return ranks


def _by_kind(items: Sequence[KnownItem], ranks: Ranks) -> dict[str, Any]:
    result: dict[str, Any] = {"all": figures(ranks)}
    for kind in KINDS:
        mine = [rank for item, rank in zip(items, ranks, strict=True) if item.kind == kind]
        if mine:
            result[kind] = figures(mine)
    return result


def _reachable(items: Sequence[KnownItem], indexed: IndexedTexts) -> float:
    """Share of the items that some chunk has: the upper limit of every hit rate."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for place in indexed.places:
        spans.setdefault(place.file, []).append((place.start, place.end))
    return sum(
        any(item.found_in(item.file, start, end) for start, end in spans.get(item.file, ()))
        for item in items
    ) / len(items)
