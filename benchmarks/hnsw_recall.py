"""Recall and time of the HNSW index against the exact search.

    python benchmarks/hnsw_recall.py VECTORS.npy [--queries N] [--rows N]

VECTORS.npy is an array [n, dimensions] of unit vectors; the last N of them are the queries and not indexed.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from engine.retrieval.vectors.hnsw_vectors import HnswVectors
from engine.retrieval.vectors.vector_file import VectorFile

_K = 10
_SHARES = (1.0, 0.5, 0.15)


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--rows", type=int, default=None)
    options = parser.parse_args()
    vectors = np.load(options.vectors, mmap_mode="r")
    queries = np.ascontiguousarray(vectors[-options.queries :], np.float32)
    rows = min(options.rows or len(vectors), len(vectors) - options.queries)
    with tempfile.TemporaryDirectory() as folder:
        file = VectorFile.create(Path(folder) / "1.vectors", vectors.shape[1], "f16")
        for at in range(0, rows, 8192):
            file.append(np.ascontiguousarray(vectors[at : min(at + 8192, rows)], np.float32))
        store = HnswVectors(file, min_rows=0)
        started = time.perf_counter()
        store.maintain(rows)
        build_s = time.perf_counter() - started
        results = [measure(store, queries, share) for share in _SHARES]
        size = (Path(folder) / "1.hnsw").stat().st_size
        store.close()
    report = {
        "rows": rows,
        "rows_per_s": rows / build_s,
        "bytes_per_row": size / rows,
        "searches": results,
    }
    json.dump(report, sys.stdout, indent=2)
    print()


def measure(store: HnswVectors, queries: np.ndarray, share: float) -> dict[str, float]:
    """Recall@10 and medians in ms, where a filter leaves a share of the rows."""
    allowed = np.random.default_rng(0).random(store.rows) < share
    found, exact, times = [], [], []
    for query in queries:
        start = time.perf_counter()
        one, _ = store.search(query[None], _K, allowed=allowed)
        middle = time.perf_counter()
        other, _ = store.file.search(query[None], _K, allowed=allowed)
        times.append((middle - start, time.perf_counter() - middle))
        found.append(set(one[0].tolist()))
        exact.append(set(other[0].tolist()))
    hnsw_s, exact_s = np.median(times, axis=0)
    recall = np.mean([len(a & b) / _K for a, b in zip(found, exact, strict=True)])
    return {
        "share": share,
        "recall": float(recall),
        "hnsw_ms": 1e3 * hnsw_s,
        "exact_ms": 1e3 * exact_s,
    }


if __name__ == "__main__":
    main()
