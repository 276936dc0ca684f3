"""Inter-token time of a chat, alone and while thousands of chunks are embedded beside it.

    python benchmarks/embedding_beside_chat.py --model FILE [--chats 8] [--precision int8 f32]

A chat has a prompt of 200 random tokens and an answer of 128. In each round it runs alone, then beside
each embedder, which embeds chunks of 100 to 180 words in calls of 64, as indexing does. Embedding stops
when the chats are done; the chunks embedded by then and the rate without a chat are reported.
"""

import argparse
import asyncio
import itertools
import random
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.embeddings import corpus
from benchmarks.machine import write_result
from engine.api.config import EmbeddingPrecision, EngineConfig
from engine.api.request import Request, SamplingParams
from engine.embedding.embedder import Embedder
from engine.runtime.engine import AsyncPravahaEngine

PROMPT, ANSWER = 200, 128
CALL = 64
TIMEOUT_S = 600.0
ALONE_S = 3.0
VOCABULARY = range(1000, 40_000)


class Indexing:
    """Embeds chunks in a thread of its own until it is left; at most `chunks`."""

    def __init__(self, embedder: Embedder, texts: list[str], chunks: int) -> None:
        self._embedder, self._texts, self._chunks = embedder, texts, chunks
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._embed)
        self.embedded, self.seconds = 0, 0.0

    def __enter__(self) -> "Indexing":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _embed(self) -> None:
        started = time.perf_counter()
        while not self._stop.is_set() and self.embedded < self._chunks:
            first = self.embedded % len(self._texts)
            texts = self._texts[first : first + CALL]
            self._embedder.submit(texts).result(TIMEOUT_S)
            self.embedded += len(texts)
        self.seconds = time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="GGUF file or directory")
    parser.add_argument("--chats", type=int, default=8, help="rounds")
    parser.add_argument("--chunks", type=int, default=10_000, help="chunks to embed at most")
    parser.add_argument("--precision", nargs="+", choices=["f32", "int8"], default=["int8"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    texts = corpus(CALL * 16, 100, 180)
    engine = AsyncPravahaEngine(EngineConfig(model=options.model, name=options.model.stem))
    engine.start()
    engine.wait_ready()
    embedders = {one: Embedder(precision=one) for one in options.precision}
    try:
        result = measure(engine, embedders, texts, options.chats, options.chunks)
    finally:
        engine.shutdown()
        for embedder in embedders.values():
            embedder.close()
    if options.json:
        write_result(options.json, result)


def measure(
    engine: AsyncPravahaEngine,
    embedders: dict[EmbeddingPrecision, Embedder],
    texts: list[str],
    chats: int,
    chunks: int,
) -> dict[str, object]:
    """Run and print; returns the intervals in seconds, by name."""
    source = random.Random(1)
    for embedder in embedders.values():
        embedder.submit(texts[:CALL]).result(TIMEOUT_S)
    chat(engine, source)
    intervals: dict[str, list[float]] = {"alone": []}
    rates: dict[str, list[float]] = {}
    for _ in range(chats):
        intervals["alone"] += chat(engine, source)
        for name, embedder in embedders.items():
            with Indexing(embedder, texts, chunks) as indexing:
                time.sleep(0.2)
                intervals.setdefault(f"beside {name}", []).extend(chat(engine, source))
            rates.setdefault(f"{name} beside", []).append(indexing.embedded / indexing.seconds)
    for name, embedder in embedders.items():
        with Indexing(embedder, texts, chunks) as indexing:
            time.sleep(ALONE_S)
        rates[f"{name} alone"] = [indexing.embedded / indexing.seconds]
    alone = statistics.fmean(intervals["alone"])
    for name, times in intervals.items():
        times.sort()
        mean, late = statistics.fmean(times), times[int(0.99 * len(times))]
        print(
            f"{name}: inter-token time {1e3 * mean:.2f} ms on average ({mean / alone:.2f} × alone), "
            f"median {1e3 * statistics.median(times):.2f}, p99 {1e3 * late:.2f}"
        )
    for name, speeds in rates.items():
        print(f"{name}: {statistics.fmean(speeds):.1f} chunks/s")
    return {"intervals": intervals, "chunks per second": rates}


def chat(engine: AsyncPravahaEngine, source: random.Random) -> list[float]:
    """Seconds between the tokens of one answer, as its reader sees them."""
    sampling = SamplingParams(temperature=0.0, max_tokens=ANSWER, ignore_eos=True)
    prompt = tuple(source.choice(VOCABULARY) for _ in range(PROMPT))

    async def read() -> list[float]:
        times: list[float] = []
        async for batch in engine.submit(Request(prompt, sampling)):
            times += [time.perf_counter()] * len(batch.token_ids)
        return times

    times = asyncio.run(read())
    return [after - before for before, after in itertools.pairwise(times)]


if __name__ == "__main__":
    main()
