"""Embedding throughput in texts per second, compared with transformers in one interleaved run.

    python benchmarks/embeddings.py [--texts N] [--rounds N] [--json FILE]

Both embed the same texts with all-MiniLM-L6-v2 in fp32 with the same number of threads, including
tokenization. transformers is used as in sentence-transformers: texts sorted by length, in batches of
32, padded to the longest. Prints median and maximum over the rounds; the two alternate in each round.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import BertModel

from benchmarks.machine import write_result
from engine._core import cpu_features
from engine.embedding.embedder import installed_encoder
from engine.embedding.text_encoder import TextEncoder

BATCH = 32


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=256, help="number of short texts")
    parser.add_argument("--rounds", type=int, default=7, help="number of rounds")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    directory, threads = installed_encoder(), int(str(cpu_features()["threads"]))
    torch.set_num_threads(threads)
    encoder = TextEncoder(directory, name="minilm", threads=threads)
    peer = transformers_encoder(directory)
    figures: dict[str, Any] = {"threads": threads, "level": cpu_features()["level"]}
    for name, words in (("short, 6–30 words", (6, 30)), ("long, 100–180 words", (100, 180))):
        texts = corpus(arguments.texts if words[1] < 100 else arguments.texts // 4, *words)
        ours, theirs = encoder.embed(texts).vectors, peer(texts)
        difference = float(np.abs(ours - theirs).max())
        runs: dict[str, list[float]] = {"pravaha": [], "transformers": []}
        for _ in range(arguments.rounds):
            runs["pravaha"].append(rate(encoder.embed, texts))
            runs["transformers"].append(rate(peer, texts))
        figures[name] = {
            "texts": len(texts),
            "tokens": encoder.embed(texts).tokens,
            "largest difference": difference,
        } | {
            f"{who}, texts/s": {"median": float(np.median(one)), "best": max(one)}
            for who, one in runs.items()
        }
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    if arguments.json:
        write_result(arguments.json, figures)


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


def transformers_encoder(directory: Path) -> Callable[[list[str]], NDArray[np.float32]]:
    """The same encoder in transformers."""
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


def rate(embed: Callable[[list[str]], object], texts: list[str]) -> float:
    """Texts per second of one call."""
    began = time.perf_counter()
    embed(texts)
    return len(texts) / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
