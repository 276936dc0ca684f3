"""Retrieval beside five others: quality, rates, latency and citations, in one run.

    benchmarks/peers_setup.sh DIR retrieval     # once: the peers and the embedding model in their formats
    benchmarks/corpora_setup.sh DIR/corpora     # once: Debian's documentation of Python, Linux and Rust
    python benchmarks/retrieval.py --dir DIR [--quick] [--stages quality,…] [--half held_out] [--json FILE]

All use the same weights (all-MiniLM-L6-v2) and, where they are compared by rank or latency, the same chunks.
Each runs in a process of its own, which is stopped while another one runs; in stages that measure time they
take turns. A peer that is missing or fails is skipped with a message.

Stages:

* quality: hit@1, hit@5 and nDCG@10 of known items (`known_items.py`), for each peer and each of its modes.
* embedding: texts per second, and cosine with sentence-transformers' vectors.
* indexing: from files to a searchable index, with embedding.
* latency: a query at `--chunks` chunks. Their vectors are stand-ins, so that nothing has to be embedded.
* answers: citations of the demo model's answers that exist and that support their sentence; how many
  questions without an answer are declined, and how many with one; time to the first token.

`--quick` takes a few minutes on two cores, with fewer texts, queries and chunks.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.fact_answers import measure_answers
from benchmarks.indexed_texts import IndexedTexts, index_files, ours, remembering
from benchmarks.known_items import known_items
from benchmarks.machine import say, write_result
from benchmarks.retrieval_corpora import (
    MissingCorpus,
    all_sources,
    page_files,
    selection,
    web_pages,
)
from benchmarks.retrieval_peers import Peers
from benchmarks.retrieval_quality import measure_quality
from benchmarks.retrieval_speed import measure_embedding, measure_indexing, measure_latency
from benchmarks.retrieval_tables import print_tables

STAGES = ("quality", "embedding", "indexing", "latency", "answers")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much each stage measures.

    Attributes:
        python_bytes, linux_bytes: limits of the files of *quality*.
        per_kind: queries per kind and half.
        embedded: texts of *embedding*.
        indexed_bytes, page_bytes: limits of the files of *indexing*.
        chunks: chunks of *latency*, about.
        queries: queries of *latency*.
        asked: questions of *answers* with one hop, and with two.
    """

    python_bytes: int = 900_000
    linux_bytes: int = 350_000
    per_kind: int = 100
    embedded: int = 256
    indexed_bytes: int = 250_000
    page_bytes: int = 300_000
    chunks: int = 100_000
    queries: int = 200
    asked: int = 20


QUICK = Sizes(400_000, 200_000, 30, 64, 60_000, 60_000, 5_000, 40, 10)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True, help="directory of the peers")
    parser.add_argument("--corpora", type=Path, help="the texts (default DIR/corpora)")
    parser.add_argument("--stages", default=",".join(STAGES), help="stages, separated by commas")
    parser.add_argument("--half", choices=("tuning", "held_out", "both"), default="held_out")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each peer")
    parser.add_argument("--chunks", type=int, help="chunks of the stage latency")
    parser.add_argument("--threads", type=int, default=2, help="threads of every process")
    parser.add_argument("--quick", action="store_true", help="a few minutes instead of an hour")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    options.stages = [name for name in options.stages.split(",") if name]
    if unknown := sorted(set(options.stages) - set(STAGES)):
        parser.error(f"unknown stage {', '.join(unknown)}: choose from {', '.join(STAGES)}")
    if min(options.rounds, options.threads, options.chunks or 1) < 1:
        parser.error("--rounds, --threads and --chunks must be at least 1")
    return options


def main() -> None:
    options = parse()
    try:
        with Peers(options.dir.resolve(), options.threads) as peers:
            Run(options, peers).run()
    except MissingCorpus as reason:
        raise SystemExit(str(reason)) from None


class Run:
    """The stages of one run."""

    def __init__(self, options: argparse.Namespace, peers: Peers) -> None:
        self._options, self._peers = options, peers
        self._sizes = QUICK if options.quick else Sizes()
        directory = options.dir.resolve()
        self._corpora = options.corpora or directory / "corpora"
        self._work = directory / "retrieval_work"
        self._work.mkdir(exist_ok=True)
        self._sample: IndexedTexts | None = None
        self._result: dict[str, Any] = {
            "threads": options.threads,
            "quick": options.quick,
            "packages": package_versions(self._corpora),
        }

    def run(self) -> None:
        """Run the stages; the result is written after each."""
        for stage in self._options.stages:
            say(f"stage {stage}")
            self._result[stage] = getattr(self, f"_{stage}")()
            self._result["peers"] = dict(self._peers.versions())
            self._result["skipped"] = self._peers.failed
            if self._options.json:
                write_result(self._options.json, self._result)
        print_tables(self._result)

    def _quality(self) -> dict[str, Any]:
        return measure_quality(
            self._peers,
            self._quality_files(),
            self._work,
            per_kind=self._sizes.per_kind,
            half=self._options.half,
        )

    def _embedding(self) -> dict[str, Any]:
        texts = self._sampled().read()
        step = max(1, len(texts) // self._sizes.embedded)
        return measure_embedding(
            self._peers,
            texts[::step][: self._sizes.embedded],
            self._work,
            rounds=self._options.rounds,
        )

    def _indexing(self) -> dict[str, Any]:
        return measure_indexing(
            self._peers,
            selection(self._corpora, "python", self._sizes.indexed_bytes),
            web_pages(self._corpora, self._sizes.page_bytes),
            self._work,
            rounds=self._options.rounds,
        )

    def _latency(self) -> dict[str, Any]:
        sample = self._sampled()
        wanted = (self._options.chunks or self._sizes.chunks) * sample.file_bytes // sample.chunks
        files = page_files(
            self._corpora, all_sources(self._corpora), wanted, self._work / "page_texts"
        )
        items = known_items(self._quality_files(), self._sizes.queries // 8)
        return measure_latency(
            self._peers,
            files,
            sample,
            [one.query for one in items][: self._sizes.queries],
            self._work,
            turns=self._options.rounds,
        )

    def _answers(self) -> dict[str, Any]:
        files = selection(self._corpora, "python", QUICK.python_bytes)
        return measure_answers(
            self._peers,
            files,
            self._work,
            asked=self._sizes.asked,
            documented=self._sizes.asked // 2,
        )

    def _quality_files(self) -> list[Path]:
        return selection(self._corpora, "python", self._sizes.python_bytes) + selection(
            self._corpora, "linux", self._sizes.linux_bytes
        )

    def _sampled(self) -> IndexedTexts:
        """Some chunks of the corpora: texts to embed, and vectors to make stand-ins of."""
        if self._sample is None:
            files = selection(self._corpora, "python", QUICK.python_bytes)
            remembering(self._peers, self._work)
            self._sample = index_files(self._peers, files, self._work, "sample")
            ours(self._peers).call("embed_again")
        return self._sample


def package_versions(corpora: Path) -> list[str]:
    """Names and versions of the documentation packages."""
    packages = sorted(corpora.glob("packages/*.deb"))
    return [
        subprocess.run(
            ["dpkg-deb", "--show", str(package)], capture_output=True, text=True, check=True
        ).stdout.strip()
        for package in packages
    ]


if __name__ == "__main__":
    main()
