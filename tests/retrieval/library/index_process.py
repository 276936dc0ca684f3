"""A process that indexes a folder in many small commits: `index_process.py LIBRARY FOLDER`."""

import sys
import time
from pathlib import Path

from engine.retrieval.indexing import batches, index_run
from engine.retrieval.library.library import Library
from tests.fakes.word_embedder import WordEmbedder


def main(directory: str, folder: str, pause_s: str = "0") -> None:
    """Refresh the collection `docs`, or fill it first; `pause_s` is what each batch costs longer."""
    batches.BATCH_CHUNKS = 8
    index_run.COMMIT_CHUNKS = 16
    with Library(Path(directory), WordEmbedder()) as library:
        collection = library.open("docs")
        print("ready", flush=True)
        report = collection.add([folder], progress=lambda _: time.sleep(float(pause_s)))
        report = collection.refresh()
        print(f"done {report.unchanged}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
