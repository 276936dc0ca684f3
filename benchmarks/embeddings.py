"""Embedding throughput in texts per second, compared with transformers in one interleaved run.

    python benchmarks/embeddings.py [--texts N] [--rounds N] [--precision f32 int8] [--json FILE]

All embed the same texts with all-MiniLM-L6-v2 with the same number of threads, including
tokenization: ours in f32 and int8, transformers in fp32 as sentence-transformers uses it: texts sorted
by length, in batches of 32, padded to the longest. Prints median and maximum over the rounds; they
alternate in each round. The cosine is with transformers' vectors. `benchmarks/retrieval.py` compares
with other peers.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from benchmarks.machine import write_result
from engine._core import cpu_features
from engine.embedding.embedder import installed_encoder
from engine.embedding.text_encoder import TextEncoder

BATCH = 32
PEER = "transformers"

Embed = Callable[[list[str]], NDArray[np.float32]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=256, help="number of short texts")
    parser.add_argument("--rounds", type=int, default=7, help="number of rounds")
    parser.add_argument("--precision", nargs="+", choices=["f32", "int8"], default=["f32", "int8"])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    directory, threads = installed_encoder(), int(str(cpu_features()["threads"]))
    encoders: dict[str, Embed] = {
        f"pravaha {precision}": ours(directory, precision, threads)
        for precision in arguments.precision
    }
    encoders[PEER] = transformers_encoder(directory, threads)
    figures: dict[str, Any] = {"threads": threads, "level": cpu_features()["level"]}
    for name, words in (("short, 6–30 words", (6, 30)), ("long, 100–180 words", (100, 180))):
        texts = corpus(arguments.texts if words[1] < 100 else arguments.texts // 4, *words)
        figures[name] = compare(encoders, texts, arguments.rounds)
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    if arguments.json:
        write_result(arguments.json, figures)


def compare(encoders: dict[str, Embed], texts: list[str], rounds: int) -> dict[str, Any]:
    """Rates of all encoders, and how close their vectors are to the peer's."""
    vectors = {name: embed(texts) for name, embed in encoders.items()}
    rates: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(rounds):
        for name, embed in encoders.items():
            rates[name].append(rate(embed, texts))
    figures: dict[str, Any] = {"texts": len(texts)}
    for name, runs in rates.items():
        cosines = (vectors[name] * vectors[PEER]).sum(1)
        figures[name] = {
            "texts/s, median": float(np.median(runs)),
            "texts/s, best": max(runs),
            "÷ transformers, median": float(np.median(runs) / np.median(rates[PEER])),
            "÷ transformers, best": max(runs) / max(rates[PEER]),
            "cosine, smallest": float(cosines.min()),
            "cosine, mean": float(cosines.mean()),
        }
    return figures


def ours(directory: Path, precision: Any, threads: int) -> Embed:
    """Our encoder."""
    encoder = TextEncoder(directory, name="minilm", precision=precision, threads=threads)
    return lambda texts: encoder.embed(texts).vectors


def corpus(count: int, fewest: int, most: int) -> list[str]:
    """Reproducible sentences of common words, with random lengths."""
    words = [
        *(
            "the",
            "a",
            "river",
            "engine",
            "token",
            "of",
            "and",
            "to",
            "in",
            "flows",
            "with",
            "memory",
        ),
        *("block", "quickly", "answers", "model", "question", "which", "reads", "every", "page"),
        *("before", "it", "writes", "another", "line", "about", "water"),
    ]
    random = np.random.default_rng(0)
    return [
        " ".join(random.choice(words, int(random.integers(fewest, most + 1)))) + "."
        for _ in range(count)
    ]


def transformers_encoder(directory: Path, threads: int) -> Embed:
    """The same encoder in transformers."""
    import torch
    from transformers import BertModel

    torch.set_num_threads(threads)
    model = BertModel.from_pretrained(directory).eval()
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.enable_truncation(256)

    def embed(texts: list[str]) -> NDArray[np.float32]:
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        vectors = np.zeros((len(texts), model.config.hidden_size), np.float32)
        for first in range(0, len(texts), BATCH):
            mine = order[first : first + BATCH]
            tokenizer.enable_padding()
            encodings = tokenizer.encode_batch([texts[at] for at in mine])
            ids = torch.tensor([one.ids for one in encodings])
            mask = torch.tensor([one.attention_mask for one in encodings])
            with torch.inference_mode():
                states = model(ids, attention_mask=mask).last_hidden_state
            weights = mask[:, :, None].float()
            means = (states * weights).sum(1) / weights.sum(1)
            vectors[mine] = torch.nn.functional.normalize(means).numpy()
        return vectors

    return embed


def rate(embed: Embed, texts: list[str]) -> float:
    """Texts per second of one call."""
    began = time.perf_counter()
    embed(texts)
    return len(texts) / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
