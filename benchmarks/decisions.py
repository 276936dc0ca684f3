"""Whether decisions are right, and what many of them cost beside reading their text.

    python benchmarks/decisions.py --model FILE [--quality] [--speed ROUNDS] [--llama-server FILE]

`--quality` asks the 136 labelled questions of `data/decisions.jsonl` (34 texts, each with two statements, a
choice and a scale; half of the texts were not looked at while the prompts were written) and prints accuracy,
the area under the ROC curve and the expected calibration error (ten bins of the likeliest answer's share),
with and without calibration by an input without content.

`--speed` decides 51 statements about a text of about 4,000 tokens and reads another text of the same length,
in turn and each time a new one, and prints the median of the ratio of their times. With `--llama-server` the
same prompts are sent to llama.cpp's server one after the other, which keeps the prompt in its cache.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.llama_server import llama_server
from benchmarks.machine import say, write_result
from engine.api.config import EngineConfig
from engine.api.decisions import (
    DecisionAnswer,
    DecisionQuestion,
    DecisionRules,
    choice,
    predicate,
    score,
)
from engine.api.request import Request, SamplingParams
from engine.decisions.calibration import Calibration
from engine.decisions.preparing import input_ids, prepare
from engine.runtime.engine import AsyncPravahaEngine

ITEMS = Path(__file__).parent / "data" / "decisions.jsonl"
BINS = 10
TOKENS = 4000
SENTENCE = (
    "the harbour was quiet when the third ship of the autumn came in with timber salt and letters for the "
    "governor who had been waiting since spring"
)
THINGS = (
    "a ship", "timber", "salt", "letters", "a governor", "spring", "autumn", "a harbour", "a storm",
    "a market", "a bridge", "a tower", "a horse", "a river", "bread", "wine", "an island",
)  # fmt: skip
STATEMENTS = [
    f"{what} {thing}."
    for thing in THINGS
    for what in ("The text mentions", "The writer waits for", "Somebody has lost")
]


def question_of(item: dict[str, Any]) -> DecisionQuestion:
    """The question of a labelled item."""
    text = item["instructions"]
    if item["type"] == "predicate":
        return predicate(text)
    return (choice if item["type"] == "choice" else score)(text, item["options"])


def right_option(item: dict[str, Any]) -> int:
    """Index of the right option."""
    if item["type"] == "predicate":
        return 0 if item["answer"] else 1
    return int(item["answer"])


def area_under_curve(scored: Sequence[tuple[float, bool]]) -> float:
    """Probability that a right option has a higher score than a wrong one."""
    right = [value for value, is_right in scored if is_right]
    wrong = [value for value, is_right in scored if not is_right]
    wins = sum((one > other) + 0.5 * (one == other) for one in right for other in wrong)
    return wins / (len(right) * len(wrong))


def calibration_error(answers: Sequence[tuple[float, bool]]) -> float:
    """Mean difference of confidence and accuracy over bins of the confidence, by their sizes."""
    total = 0.0
    for at in range(BINS):
        inside = [one for one in answers if at / BINS < one[0] <= (at + 1) / BINS]
        if inside:
            total += abs(sum(share for share, _ in inside) - sum(right for _, right in inside))
    return total / len(answers)


def figures(items: Sequence[dict[str, Any]], answers: Sequence[DecisionAnswer]) -> dict[str, Any]:
    """The figures of some answers."""
    pairs = [(answer, right_option(item)) for item, answer in zip(items, answers, strict=True)]
    hits = [(answer.probabilities[answer.best], answer.best == right) for answer, right in pairs]
    scored = [
        (share, at == right)
        for answer, right in pairs
        for at, share in enumerate(answer.probabilities)
    ]
    decided = [
        hit
        for (answer, _), (_, hit) in zip(pairs, hits, strict=True)
        if answer.outcome == "decided"
    ]
    return {
        "items": len(items),
        "right": sum(hit for _, hit in hits),
        "accuracy": round(sum(hit for _, hit in hits) / len(hits), 3),
        "auc": round(area_under_curve(scored), 3),
        "ece": round(calibration_error(hits), 3),
        "decided": len(decided),
        "right_of_decided": sum(decided),
        "least_label_mass": round(min(answer.label_mass for answer, _ in pairs), 3),
    }


def quality(engine: AsyncPravahaEngine) -> list[dict[str, Any]]:
    """Figures by part of the data, kind of question and calibration."""
    items = [json.loads(line) for line in ITEMS.read_text().splitlines()]
    texts = list(dict.fromkeys(item["input"] for item in items))
    results = []
    for calibrate in (False, True):
        found: dict[int, DecisionAnswer] = {}
        for text in texts:
            asked = [at for at, item in enumerate(items) if item["input"] == text]
            decided = engine.decide(
                text, [question_of(items[at]) for at in asked], calibrate=calibrate
            )
            found |= dict(zip(asked, decided.answers, strict=True))
        for part in ("seen", "unseen"):
            for kind in ("predicate", "choice", "score", "all"):
                some = [
                    at
                    for at, item in enumerate(items)
                    if item["part"] == part and kind in (item["type"], "all")
                ]
                row = figures([items[at] for at in some], [found[at] for at in some])
                results.append({"part": part, "kind": kind, "calibrated": calibrate, **row})
                say(" ".join(f"{key} {value}" for key, value in results[-1].items()))
    return results


def document(engine: AsyncPravahaEngine, seed: int, tokens: int) -> str:
    """A text of about so many tokens, of which no other seed's has a common beginning."""
    drawn, words, text = random.Random(seed), SENTENCE.split(), f"Report {seed}. "
    while len(engine.tokenizer.encode(text)) < tokens:
        text += " ".join(drawn.choice(words) for _ in range(200)) + ". "
    return text


def speed(engine: AsyncPravahaEngine, rounds: int, tokens: int) -> dict[str, Any]:
    """Times of deciding and of reading alone, in turn."""
    questions = [predicate(one) for one in STATEMENTS]
    ratios, times = [], []
    for number in range(rounds):
        measured: dict[str, float] = {}
        # The first of a pair has the warmer machine: alternate.
        for what in ("read", "decide") if number % 2 == 0 else ("decide", "read"):
            text = document(engine, 2 * number + (what == "read"), tokens)
            ids = tuple(input_ids(engine.tokenizer, text))
            started = time.perf_counter()
            if what == "read":
                sampling = SamplingParams(temperature=0.0, max_tokens=1, ignore_eos=True)
                engine.submit(Request(ids, sampling)).wait_result()
            else:
                decided = engine.decide(text, questions)
            measured[what] = time.perf_counter() - started
        ratios.append(measured["decide"] / measured["read"])
        times.append(measured)
        say(f"read {measured['read']:.2f} s, decide {measured['decide']:.2f} s: {ratios[-1]:.3f}")
    return {
        "questions": len(questions),
        "input_tokens": decided.input_tokens,
        "read_s": statistics.median(one["read"] for one in times),
        "decide_s": statistics.median(one["decide"] for one in times),
        "ratio": statistics.median(ratios),
    }


def beside_llama(
    engine: AsyncPravahaEngine, binary: Path, model: Path, tokens: int
) -> dict[str, Any]:
    """The same prompts, asked one after the other of llama.cpp's server with its prompt cache."""
    text = document(engine, 1_000_003, tokens)
    started = time.perf_counter()
    engine.decide(text, [predicate(one) for one in STATEMENTS])
    ours = time.perf_counter() - started
    batch = prepare(
        engine.tokenizer,
        [predicate(one) for one in STATEMENTS],
        DecisionRules(),
        shared=input_ids(engine.tokenizer, text),
        block_size=1,
        model="",
        calibration=Calibration(),
    )
    sizes = ("-np", "1", "-c", str(2 * tokens), "-t", "2")
    with (
        llama_server(binary, model, *sizes) as url,
        httpx.Client(base_url=url, timeout=3600) as client,
    ):
        body = {"n_predict": 1, "n_probs": 10, "temperature": 0, "cache_prompt": True}
        times = []
        for request in batch.requests():
            began = time.perf_counter()
            answer = client.post("/completion", json={**body, "prompt": list(request.prompt_ids)})
            answer.raise_for_status()
            times.append(time.perf_counter() - began)
    return {
        "pravaha_s": ours,
        "llama_s": sum(times),
        "llama_first_s": times[0],
        "requests": len(times),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--speed", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of the text of --speed")
    parser.add_argument("--llama-server", type=Path, metavar="FILE")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"model": options.model.stem}
    engine = AsyncPravahaEngine(EngineConfig(model=options.model, name=options.model.stem))
    engine.start()
    try:
        engine.wait_ready(None)
        if options.quality:
            results["quality"] = quality(engine)
        if options.speed:
            results["speed"] = speed(engine, options.speed, options.tokens)
        if options.llama_server:
            results["llama"] = beside_llama(
                engine, options.llama_server, options.model, options.tokens
            )
    finally:
        engine.shutdown()
    for name in ("speed", "llama"):
        if name in results:
            print(name, {key: round(value, 3) for key, value in results[name].items()})
    if options.json:
        write_result(options.json, results)


if __name__ == "__main__":
    main()
