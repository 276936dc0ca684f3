"""A process that indexes a folder in many small commits: `index_process.py LIBRARY FOLDER [step]`."""

import sys
from pathlib import Path

from engine.retrieval.indexing import batches, index_run
from engine.retrieval.library.library import Library
from tests.fakes.word_embedder import WordEmbedder


def main(directory: str, folder: str, mode: str = "") -> None:
    """Fill the collection `docs`, then refresh it; `step` waits for a line after each batch."""
    batches.BATCH_CHUNKS = 8
    index_run.COMMIT_CHUNKS = 16
    with Library(Path(directory), WordEmbedder()) as library:
        collection = library.open("docs")
        print("ready", flush=True)
        report = collection.add([folder], progress=lambda _: mode and sys.stdin.readline())
        report = collection.refresh()
        print(f"done {report.unchanged}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
