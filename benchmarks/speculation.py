"""Prompt-lookup speculation on and off: tokens a second on texts that repeat another, and on free ones.

    python benchmarks/speculation.py [MODEL] [--runs 7] [--streams 1 4] [--json FILE]

Two engines in one process, of the same model, take turns with the same requests: what slows the
machine for a while slows both. Each run is all prompts of a kind, one after the other in as many
streams as named; figures are the best run and the median one. Answers with and without are compared,
too: they must be equal. `--acceptance` prints what share of guesses is right after so many agreeing
tokens, which is where the prior in `engine/pipeline/speculation.py` comes from.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from engine._core import draft_by_lookup
from engine.config import EngineConfig
from engine.engine import AsyncPravahaEngine
from engine.pipeline.speculation import MOST_MATCH
from engine.request import Request, SamplingParams

CODE = '''def load_settings(path):
    """Read settings from a JSON file."""
    with open(path) as file:
        data = json.load(file)
    settings = Settings()
    for name, value in data.items():
        if not hasattr(settings, name):
            raise ValueError(f"unknown setting {name}")
        setattr(settings, name, value)
    return settings
'''
PROSE = (
    "The lighthouse stood at the end of a long and narrow spit of land, and on most days the wind "
    "came at it from three sides. Its keeper had lived there for thirty one years. He wrote down the "
    "weather every morning, the ships every noon, and every evening whatever had surprised him "
    "during the day. On the ninth of March he wrote that a heron had come to sit on the gallery, "
    "and that it had not been afraid of him at all."
)
LETTER = (
    "Dear Mrs Hall, thank you for your order of twelve oak chairs and one table. We have to tell you "
    "that the chairs will be two weeks late, since the wood was not dry enough to be worked on. "
    "The table is ready and can be sent to you on Monday. Please tell us if you would rather wait "
    "and have everything together. We are sorry for the trouble and have taken ten percent off "
    "the price. Yours, the workshop."
)
EDIT = [
    f"Correct the spelling of this text and repeat it:\n\n{PROSE}",
    f"Repeat this letter, but say three weeks instead of two weeks:\n\n{LETTER}",
    f"Repeat this code exactly:\n\n```python\n{CODE}```",
]
FREE = [
    "Write a haiku about the sea.",
    "What does a compiler do?",
    "Tell me a short story about a fox.",
    "Give me advice for a job interview.",
    "How does a bicycle stay upright?",
    "Explain why the sky is blue.",
]
KINDS = {"edit": (EDIT, 0.0), "free": (FREE, 0.0), "free, drawn": (FREE, 0.8)}
NEW_TOKENS = 120


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", type=Path, help="a GGUF file; the demo model's")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--streams", type=int, nargs="+", default=[1])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--acceptance", action="store_true")
    options = parser.parse_args(arguments)
    model = options.model or _demo_model()
    engines = {on: _engine(model, speculation=on) for on in (False, True)}
    try:
        if options.acceptance:
            _print_acceptance(engines[False])
            return
        report = [
            _compare(engines, kind, streams=streams, runs=options.runs)
            for streams in options.streams
            for kind in KINDS
        ]
    finally:
        for engine in engines.values():
            engine.shutdown()
    print(f"{'kind':12} streams   off best (median)   on best (median)    gain      accepted")
    for row in report:
        print(
            f"{row['kind']:12} {row['streams']:7}   {row['off_best']:6.1f} ({row['off_median']:6.1f})   "
            f"   {row['on_best']:6.1f} ({row['on_median']:6.1f})     "
            f"×{row['gain_best']:.2f} ({row['gain_median']:.2f})   "
            f"{row['accepted']} of {row['drafted']}"
        )
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def _demo_model() -> Path:
    from app.runtime import find_model
    from app.settings_sources import load_settings

    return find_model(load_settings({})).path


def _engine(model: Path, *, speculation: bool) -> AsyncPravahaEngine:
    # Without a prefix cache every run computes the same.
    config = EngineConfig(
        model, "model", kv_cache_bytes=256 << 20, prefix_caching=False, speculation=speculation
    )
    engine = AsyncPravahaEngine(config)
    engine.start()
    engine.wait_ready(120)
    return engine


def _requests(engine: AsyncPravahaEngine, kind: str) -> list[Request]:
    prompts, temperature = KINDS[kind]
    sampling = SamplingParams(
        temperature=temperature, top_p=0.95, seed=7, max_tokens=NEW_TOKENS, ignore_eos=True
    )
    encode = engine.tokenizer.encode_chat
    return [
        Request(tuple(encode([{"role": "user", "content": prompt}])), sampling)
        for prompt in prompts
    ]


def _compare(
    engines: dict[bool, AsyncPravahaEngine], kind: str, *, streams: int, runs: int
) -> dict[str, object]:
    speeds: dict[bool, list[float]] = {False: [], True: []}
    answers: dict[bool, list[tuple[int, ...]]] = {}
    before = engines[True].snapshot().totals
    for run in range(runs + 1):
        order = (False, True) if run % 2 else (True, False)
        for on in order:
            answers[on], speed = _run(engines[on], kind, streams)
            if run:  # the first one warms up
                speeds[on].append(speed)
        if answers[True] != answers[False]:
            sys.exit(f"{kind}: the answers differ.")
    after = engines[True].snapshot().totals
    best = {on: max(values) for on, values in speeds.items()}
    median = {on: statistics.median(values) for on, values in speeds.items()}
    return {
        "kind": kind,
        "streams": streams,
        "off_best": best[False],
        "off_median": median[False],
        "on_best": best[True],
        "on_median": median[True],
        "gain_best": best[True] / best[False],
        "gain_median": statistics.median(
            on / off for on, off in zip(speeds[True], speeds[False], strict=True)
        ),
        "drafted": after.draft_tokens - before.draft_tokens,
        "accepted": after.accepted_draft_tokens - before.accepted_draft_tokens,
    }


def _run(
    engine: AsyncPravahaEngine, kind: str, streams: int
) -> tuple[list[tuple[int, ...]], float]:
    """Answers, and decoded tokens a second; prefills are not counted."""
    requests = _requests(engine, kind)
    if streams == 1:
        outputs = [engine.submit(request).wait_result(600) for request in requests]
        seconds = sum(
            (one.timings.last_token or 0.0) - (one.timings.first_token or 0.0) for one in outputs
        )
        tokens = sum(len(one.token_ids) - 1 for one in outputs)
        return [one.token_ids for one in outputs], tokens / seconds
    repeated = (requests * -(-streams // len(requests)))[:streams]
    repeated = [Request(one.prompt_ids, one.sampling) for one in repeated]
    began = time.perf_counter()
    with ThreadPoolExecutor(streams) as pool:
        outputs = list(pool.map(lambda one: engine.submit(one).wait_result(600), repeated))
    tokens = sum(len(one.token_ids) for one in outputs)
    return [one.token_ids for one in outputs], tokens / (time.perf_counter() - began)


def _print_acceptance(engine: AsyncPravahaEngine) -> None:
    """Share of first guesses that are right, by how many tokens agreed before."""
    for kind in KINDS:
        right, tried = np.zeros(MOST_MATCH + 1), np.zeros(MOST_MATCH + 1)
        for request in _requests(engine, kind):
            output = engine.submit(request).wait_result(600)
            whole = np.array([(*request.prompt_ids, *output.token_ids)], np.int32)
            for known in range(len(request.prompt_ids) + 1, whole.shape[1]):
                draft, length, matched = (np.zeros(n, np.int32) for n in (1, 1, 1))
                draft_by_lookup(
                    whole,
                    np.full((1, 1), -1, np.int32),
                    np.array([known], np.int32),
                    np.ones(1, np.int32),
                    np.zeros(1, np.int32),
                    draft[:, None],
                    length,
                    matched,
                    least=2,
                    most=MOST_MATCH,
                )
                tried[matched[0]] += 1
                right[matched[0]] += draft[0] == whole[0, known]
        shares = right[2:] / np.maximum(tried[2:], 1)
        print(kind, {n: f"{one:.2f} of {int(tried[n])}" for n, one in enumerate(shares, start=2)})


if __name__ == "__main__":
    main()
