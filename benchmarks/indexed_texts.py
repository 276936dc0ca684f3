"""`IndexedTexts`: files indexed by Pravāha, and their chunks as every peer gets them."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import say
from benchmarks.retrieval_peers import OURS, Peers, Recipe, RetrievalProcess
from benchmarks.search_quality import Place


@dataclass(frozen=True, slots=True)
class IndexedTexts:
    """Chunks of a collection, numbered from 0.

    Attributes:
        texts: file with one JSON string a line.
        places: the span of each.
        chunks: how many there are.
        text_bytes: UTF-8 bytes of all texts; overlaps count twice.
        file_bytes: bytes of the files.
        seconds: time from the files to searchable chunks.
    """

    texts: Path
    places: tuple[Place, ...]
    chunks: int
    text_bytes: int
    file_bytes: int
    seconds: float

    @property
    def digest(self) -> str:
        """SHA-256 of all texts: equal if two runs compared the same chunks."""
        return hashlib.sha256(self.texts.read_bytes()).hexdigest()[:16]

    def read(self) -> list[str]:
        """The texts."""
        return [json.loads(line) for line in self.texts.read_text().splitlines()]


def ours(peers: Peers, recipe: Recipe = OURS) -> RetrievalProcess:
    """Our own process, which cannot be skipped."""
    process = peers.started(recipe)
    assert process is not None
    return process


def index_files(
    peers: Peers, files: Sequence[Path], work: Path, name: str, recipe: Recipe = OURS
) -> IndexedTexts:
    """Index files as a collection of their own, replacing the one before.

    Args:
        work: folder for the collection's chunks.
        name: name of the files written there.
    """
    say(f"indexing {len(files)} files: {name}")
    folder, texts, places = (work / f"{name}{end}" for end in ("", ".texts", ".places"))
    process = ours(peers, recipe)
    answer = process.call(
        "pipeline", files=[str(file) for file in files], folder=str(folder), settings="default"
    )
    written = process.call("chunks", folder=str(folder), texts=str(texts), places=str(places))
    return IndexedTexts(
        texts,
        tuple(Place(*json.loads(line)) for line in places.read_text().splitlines()),
        written["chunks"],
        written["bytes"],
        sum(file.stat().st_size for file in files),
        answer["seconds"],
    )


def remembering(peers: Peers, work: Path, recipe: Recipe = OURS) -> None:
    """Let our process keep vectors in a file between runs, for stages that measure no time.

    `embed_again` ends it.
    """
    ours(peers, recipe).call("remember", path=str(work / f"remembered-{recipe[1]}.npz"))


def reference_vectors(peers: Peers, texts: Path, work: Path) -> Path:
    """Vectors of texts in fp32 for every peer, computed once for each set of texts.

    Our executor computes them; the stage *embedding* shows how near they are to sentence-transformers'.
    """
    digest = hashlib.sha256(texts.read_bytes()).hexdigest()[:16]
    target = work / f"vectors-{digest}.npy"
    if not target.exists():
        remembering(peers, work)
        part = target.with_name("part-" + target.name)
        ours(peers).call("vectors", texts=str(texts), out=str(part))
        ours(peers).call("embed_again")
        part.rename(target)
    return target
