"""Cost of structured output: compiling grammars and computing token masks.

    python benchmarks/grammar_masks.py [--json FILE]

Generates random outputs under several grammars with the demo model's vocabulary, without its weights.
Times are milliseconds for compilation and microseconds for masks.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import write_result
from engine.api.grammar import Grammar
from engine.batch.grammar_rows import GrammarRows
from engine.executors.open_model import open_model
from engine.grammar.compiler import GrammarCompiler
from engine.grammar.matcher import Matcher
from engine.models.demo import SMOLLM2
from engine.models.store import ModelStore

ROWS = 64
TOKENS = 200

GRAMMARS = {
    "any JSON object": Grammar.json_object(),
    "a flat record": Grammar.json_schema(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 40},
                "age": {"type": "integer", "minimum": 0, "maximum": 150},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 4},
            },
            "required": ["name", "age", "tags"],
            "additionalProperties": False,
        }
    ),
    "a tree": Grammar.json_schema(
        {
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "value": {"type": "number"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    },
                    "required": ["value", "children"],
                    "additionalProperties": False,
                }
            },
            "$ref": "#/$defs/node",
        }
    ),
    "a thousand choices": Grammar.choice(f"choice number {one}" for one in range(1000)),
    "a regular expression": Grammar.regex(r"[A-Z][a-z]{2,20}( [A-Z][a-z]{2,20}){0,3}, \d{4}"),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    model = open_model(ModelStore().add(SMOLLM2.name).path)
    compiler = GrammarCompiler(model.tokenizer, model.spec.vocab_size)
    began = time.perf_counter()
    compiler.build(Grammar.regex("x")).result()
    figures: dict[str, Any] = {
        "first build of a process, ms": (time.perf_counter() - began) * 1e3,
        "grammars": {
            name: measure(compiler, grammar, model.spec.vocab_size)
            for name, grammar in GRAMMARS.items()
        },
    }
    compiler.close()
    print(json.dumps(figures, indent=2))
    if arguments.json:
        write_result(arguments.json, figures)


def measure(compiler: GrammarCompiler, grammar: Grammar, vocab_size: int) -> dict[str, float]:
    """Measure one grammar."""
    began = time.perf_counter()
    start = compiler.build(grammar).result()
    build_ms = (time.perf_counter() - began) * 1e3
    random = np.random.default_rng(0)
    masks, consumes = [], []
    while len(masks) < TOKENS:
        matcher = start.matcher()
        bits = np.zeros((1, matcher.mask_words), np.uint32)
        while not matcher.finished and len(masks) < TOKENS:
            began = time.perf_counter()
            matcher.library.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
            masks.append(time.perf_counter() - began)
            token = draw(bits[0], random)
            began = time.perf_counter()
            matcher.consume([token])
            consumes.append(time.perf_counter() - began)
    micro = np.array(masks) * 1e6
    return {
        "build, ms": build_ms,
        "mask, µs, median": float(np.median(micro)),
        "mask, µs, p95": float(np.percentile(micro, 95)),
        "mask, µs, worst": float(micro.max()),
        "consume, µs, median": float(np.median(consumes) * 1e6),
        f"masks of {ROWS} rows, µs, median": many(start.matcher, random),
    }


def many(new_matcher: Any, random: np.random.Generator) -> float:
    """Median microseconds for the masks of `ROWS` rows, computed as in a step."""
    rows = GrammarRows(ROWS)
    everyone = np.arange(ROWS, dtype=np.int32)
    matchers: list[Matcher] = [new_matcher() for _ in range(ROWS)]
    for row, matcher in enumerate(matchers):
        rows.place(row, matcher)
    plan: Any = argparse.Namespace(rows=everyone, needs_logits=np.ones(ROWS, np.uint8))
    took = []
    for _ in range(40):
        began = time.perf_counter()
        _, bits = rows.masks(plan)
        took.append(time.perf_counter() - began)
        for row, matcher in enumerate(matchers):
            if matcher.finished:
                matchers[row] = matcher = new_matcher()
                rows.place(row, matcher)
                continue
            if not matcher.consume([draw(bits[row], random)]):
                raise SystemExit(matcher.error)
    return float(np.median(took) * 1e6)


def draw(bits: NDArray[np.uint32], random: np.random.Generator) -> int:
    """A random token that the mask allows."""
    allowed = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
    return int(random.choice(allowed))


if __name__ == "__main__":
    main()
