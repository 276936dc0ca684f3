"""The tokenizer of a GGUF file with a SentencePiece vocabulary beside the `sentencepiece` library.

Compares token ids and decoded texts of random mixed texts (`tests/fakes/mixed_strings.py`) and measures how
long the vocabulary takes to load and 100,000 characters to encode and decode.

    python benchmarks/tokenizer_reference.py --model gemma-3-270m-q4_k_m.gguf
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine._core import GgufFile
from engine.text.gguf_vocabulary import read_tokenizer
from tests.fakes.mixed_strings import mixed_strings
from tests.fakes.sentencepiece_model import sentencepiece_model

LONG = {"prose": "The weather in Paris is sunny, 24 degrees. ", "one letter": "a", "blanks": " "}
LENGTH = 100_000
_Result = TypeVar("_Result")


def timed(call: Callable[[], _Result]) -> tuple[float, _Result]:
    """Seconds of a call, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def main() -> None:
    """Print the differences and the times."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--strings", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    metadata = GgufFile(options.model).metadata
    pieces = metadata["tokenizer.ggml.tokens"]
    load_s, ours = timed(
        lambda: read_tokenizer(metadata, source=options.model.name, vocab_size=len(pieces))
    )
    theirs = sentencepiece_model(metadata)
    different = 0
    for text in mixed_strings(options.strings, seed=options.seed, pieces=pieces):
        ids, expected = ours.encode(text), theirs.EncodeAsIds(text)
        if ids != expected or ours.decode(ids) != theirs.DecodeIds(expected):
            different += 1
            print(f"{text[:60]!r}: {ids[:8]} and {expected[:8]}")
    print(f"{options.strings} texts, {different} different")
    print(f"{len(pieces)} tokens loaded in {load_s:.2f} s")
    for name, unit in LONG.items():
        text = (unit * LENGTH)[:LENGTH]
        encode_s, ids = timed(partial(ours.encode, text))
        decode_s, _ = timed(partial(ours.decode, ids))
        print(f"{name}: {encode_s * 1000:.0f} ms to encode, {decode_s * 1000:.0f} ms to decode")


if __name__ == "__main__":
    main()
