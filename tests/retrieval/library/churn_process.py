"""A process that adds and deletes documents until it is killed: `churn_process.py LIBRARY FOLDER`."""

import itertools
import sys
from pathlib import Path

from engine.retrieval.indexing import collection_writer
from engine.retrieval.library.library import Library
from tests.fakes.word_embedder import WordEmbedder

_DOCUMENTS = 6


def main(directory: str, folder: str) -> None:
    """Replace half of the documents in each round, so that each one rewrites the vectors."""
    collection_writer.MIN_DEAD_SLOTS = 2
    with Library(Path(directory), WordEmbedder()) as library:
        collection = library.open("docs")
        last = max(
            (int(one.stem.removeprefix("number")) for one in Path(folder).iterdir()), default=0
        )
        print("ready", flush=True)
        for number in itertools.count(last + 1):
            (Path(folder) / f"number{number}.txt").write_text(f"number{number}\n")
            if number % 6 == 0:
                for old in sorted(Path(folder).iterdir(), key=lambda one: one.stat().st_mtime_ns)[
                    :-_DOCUMENTS
                ]:
                    old.unlink()
                collection.add([folder])
                collection.refresh()


if __name__ == "__main__":
    main(*sys.argv[1:])
