"""Decode throughput with and without prompt-lookup speculation, on repetitive and on free texts.

    python benchmarks/speculation.py [MODEL] [--runs 5] [--kinds edit free drawn] [--json FILE]
    python benchmarks/speculation.py MODEL --draft-model FILE [--kinds everyday everyday-0.2 everyday-1]
    python benchmarks/speculation.py [MODEL] --replay 2.1 2.8 4.3 8.0 14.7

Two engines with the same model in one process alternate on every prompt, one stream, so that noisy
neighbours affect both. *Best* is computed from each prompt's fastest run, *median* from whole runs;
prefill is excluded. Outputs with and without speculation must be equal. The kinds are *edit* (repetitive,
greedy), *free* (greedy), *drawn* (free, sampled at temperature 0.8), and *everyday*, twelve prompts of
`data/everyday_prompts.json`, greedy or at temperature 0.2 or 1.

With `--draft-model` both engines look drafts up in the text, and the second one has a draft model besides
(pairs of models: `benchmarks/widened_models.py`).

`--replay` is independent of the machine: it runs the outputs through the speculation policy with given
step times, in milliseconds at 1, 2, 4, 8 and 16 tokens. `--acceptance` prints the acceptance rate by
match length, from which the prior in `engine/scheduler/speculation.py` was taken.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import write_result
from engine._core import draft_by_lookup
from engine.api.config import EngineConfig
from engine.api.request import Request, RequestOutput, SamplingParams, new_request_id
from engine.api.step_costs import StepCosts
from engine.batch.rows import RowTable
from engine.runtime.engine import AsyncPravahaEngine
from engine.scheduler.speculation import MAX_MATCH, MIN_MATCH, Speculation

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
EVERYDAY: list[str] = json.loads(
    (Path(__file__).parent / "data" / "everyday_prompts.json").read_text()
)["unseen"][:12]
KINDS = {
    "edit": (EDIT, 0.0),
    "free": (FREE, 0.0),
    "drawn": (FREE, 0.8),
    "everyday": (EVERYDAY, 0.0),
    "everyday-0.2": (EVERYDAY, 0.2),
    "everyday-1": (EVERYDAY, 1.0),
}
"""Kind → prompts and temperature."""
NEW_TOKENS = 100
REPLAYED = (1, 2, 4, 8, 16)
"""Tokens per step of the times given to `--replay`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", type=Path, help="GGUF file (default: demo model)")
    parser.add_argument("--runs", type=int, default=5, help="runs per prompt")
    parser.add_argument(
        "--kinds",
        nargs="+",
        choices=KINDS,
        default=["edit", "free", "drawn"],
        help="kinds of prompts",
    )
    parser.add_argument("--prompts", type=int, help="number of prompts of each kind (default: all)")
    parser.add_argument("--tokens", type=int, default=NEW_TOKENS, help="tokens per answer")
    parser.add_argument("--draft-model", type=Path, help="GGUF file of a draft model")
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    parser.add_argument(
        "--acceptance", action="store_true", help="print acceptance rates by match length"
    )
    parser.add_argument(
        "--replay",
        type=float,
        nargs=len(REPLAYED),
        metavar="MS",
        help="simulate with these step times in milliseconds",
    )
    options = parser.parse_args(arguments)
    model = options.model or _demo_model()
    alone = options.acceptance or options.replay
    draft = options.draft_model
    engines = {
        on: _engine(model, speculation=on or draft is not None, draft_model=draft if on else None)
        for on in ((False,) if alone else (False, True))
    }
    report: list[dict[str, object]] = []
    try:
        for kind in options.kinds:
            if options.acceptance:
                _print_acceptance(engines[False], kind)
            elif options.replay:
                _print_replay(engines[False], kind, np.array(options.replay) / 1000)
            else:
                report.append(
                    _compare(
                        engines,
                        kind,
                        runs=options.runs,
                        prompts=options.prompts,
                        tokens_each=options.tokens,
                    )
                )
                _print_row(report[-1])
    finally:
        for engine in engines.values():
            engine.shutdown()
    if options.json:
        write_result(options.json, {"kinds": report})


def _print_row(row: dict[str, object]) -> None:
    print(
        f"{row['kind']:12} tok/s, best (median): off {row['off_best']:.1f} ({row['off_median']:.1f}), "
        f"on {row['on_best']:.1f} ({row['on_median']:.1f}); gain ×{row['gain_best']:.2f} "
        f"(×{row['gain_median']:.2f}); {row['accepted']} of {row['drafted']} draft tokens accepted "
        f"({row['accepted_of_model']} of {row['drafted_by_model']} of a draft model); "
        f"{row['decode_row_ms']:.2f} ms per token in a step of {row['step_ms']:.2f} ms",
        flush=True,
    )


def _demo_model() -> Path:
    from app.runtime.opening import find_model
    from app.settings.sources import load_settings

    return find_model(load_settings({})).path


def _engine(
    model: Path, *, speculation: bool, draft_model: Path | None = None
) -> AsyncPravahaEngine:
    # Without a prefix cache, so that every run computes the same tokens.
    config = EngineConfig(
        model,
        "model",
        kv_cache_bytes=256 << 20,
        prefix_caching=False,
        speculation=speculation,
        draft_model=draft_model,
    )
    engine = AsyncPravahaEngine(config)
    engine.start()
    engine.wait_ready(120)
    return engine


def _requests(engine: AsyncPravahaEngine, kind: str, tokens: int = NEW_TOKENS) -> list[Request]:
    prompts, temperature = KINDS[kind]
    sampling = SamplingParams(
        temperature=temperature, top_p=0.95, seed=7, max_tokens=tokens, ignore_eos=True
    )
    encode = engine.tokenizer.encode_chat
    return [
        Request(tuple(encode([{"role": "user", "content": prompt}])), sampling)
        for prompt in prompts
    ]


def _compare(
    engines: dict[bool, AsyncPravahaEngine],
    kind: str,
    *,
    runs: int,
    prompts: int | None,
    tokens_each: int,
) -> dict[str, object]:
    requests = {on: _requests(engine, kind, tokens_each) for on, engine in engines.items()}
    count = len(requests[True][:prompts])
    seconds = {on: np.zeros((runs, count)) for on in engines}
    tokens = np.zeros(count)
    before = engines[True].snapshot().totals
    for run in range(-1, runs):  # run -1 is a warm-up
        for index in range(count if run >= 0 else 1):
            answers = {}
            for on in (False, True) if (run + index) % 2 else (True, False):
                request = replace(requests[on][index], request_id=new_request_id())
                output = engines[on].submit(request).wait_result(600)
                answers[on] = output.token_ids
                if run >= 0:
                    seconds[on][run, index] = _decoding(output)
            if answers[True] != answers[False]:
                sys.exit(f"{kind}: the outputs differ.")
            tokens[index] = len(answers[True]) - 1
    after = engines[True].snapshot().totals
    if engines[True].config.draft_model is not None and after.model_draft_tokens == 0:
        print(f"{kind}: the draft model proposed nothing.")
    best = {on: float(tokens.sum() / one.min(axis=0).sum()) for on, one in seconds.items()}
    each = {on: tokens.sum() / one.sum(axis=1) for on, one in seconds.items()}
    costs = engines[True].snapshot().step_costs
    return {
        "kind": kind,
        "step_ms": None if costs is None else 1000 * (costs.constant + costs.decode_row),
        "decode_row_ms": None if costs is None else 1000 * costs.decode_row,
        "off_best": best[False],
        "off_median": statistics.median(each[False].tolist()),
        "on_best": best[True],
        "on_median": statistics.median(each[True].tolist()),
        "gain_best": best[True] / best[False],
        "gain_median": statistics.median((each[True] / each[False]).tolist()),
        "drafted": after.draft_tokens - before.draft_tokens,
        "accepted": after.accepted_draft_tokens - before.accepted_draft_tokens,
        "drafted_by_model": after.model_draft_tokens - before.model_draft_tokens,
        "accepted_of_model": after.accepted_model_draft_tokens - before.accepted_model_draft_tokens,
    }


def _decoding(output: RequestOutput) -> float:
    """Seconds from the first token to the last."""
    return (output.timings.last_token or 0.0) - (output.timings.first_token or 0.0)


def _texts(engine: AsyncPravahaEngine, kind: str) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Length of each prompt, and the prompt with its output: [1, N] int32."""
    for request in _requests(engine, kind):
        output = engine.submit(request).wait_result(600)
        yield (
            len(request.prompt_ids),
            np.array([(*request.prompt_ids, *output.token_ids)], np.int32),
        )


def _print_acceptance(engine: AsyncPravahaEngine, kind: str) -> None:
    """Print the acceptance rate of first draft tokens by match length."""
    right, tried = np.zeros(MAX_MATCH + 1), np.zeros(MAX_MATCH + 1)
    for prompt, whole in _texts(engine, kind):
        for num_tokens in range(prompt + 1, whole.shape[1]):
            draft, length, matched = np.zeros((1, 1), np.int32), np.zeros(1, np.int32), _one(0)
            draft_by_lookup(
                whole,
                np.full((1, 1), -1, np.int32),
                _one(num_tokens),
                _one(1),
                _one(0),
                draft,
                length,
                matched,
                min_match=MIN_MATCH,
                max_match=MAX_MATCH,
            )
            tried[matched[0]] += 1
            right[matched[0]] += draft[0, 0] == whole[0, num_tokens]
    shares = {
        at: f"{right[at] / max(tried[at], 1):.2f} of {int(tried[at])}"
        for at in range(MIN_MATCH, MAX_MATCH + 1)
    }
    print(kind, shares, flush=True)


def _one(value: int) -> NDArray[np.int32]:
    return np.array([value], np.int32)


def _print_replay(engine: AsyncPravahaEngine, kind: str, seconds: NDArray[np.float64]) -> None:
    """Print the speculation policy's gain on the outputs with the given step times."""
    slope, constant = np.polyfit(REPLAYED, seconds, 1)
    costs = StepCosts(max(float(constant), 0.0), 0.0, float(slope), 0.0)
    plain = drafted = 0.0
    tried = right = 0
    for prompt, whole in _texts(engine, kind):
        end = whole.shape[1]
        table = RowTable(max_rows=1, max_model_len=end, block_size=32)
        table.token_table[:] = whole
        table.num_prompt_tokens[0], table.max_total[0], table.may_draft[0] = prompt, end, True
        table.stop_ids[0] = -1
        speculation = Speculation(table, token_budget=512)
        num_tokens = prompt + 1
        plain += float(seconds[0]) * (end - num_tokens)
        while num_tokens < end:
            table.num_tokens[0], table.num_computed[0] = num_tokens, num_tokens - 1
            drafts = speculation.propose(_one(0), _one(1), costs)
            count = 0 if drafts is None else int(drafts.counts[0])
            draft = table.token_table[0, num_tokens : num_tokens + count].copy()
            matches = draft == whole[0, num_tokens : num_tokens + count]
            accepted = int(np.argmin([*matches, False]))
            table.token_table[:] = whole
            if drafts is not None:
                speculation.learn(_one(0), drafts, _one(accepted))
            tried, right = tried + count, right + accepted
            drafted += float(np.interp(1 + count, REPLAYED, seconds))
            num_tokens += accepted + 1
    print(
        f"{kind:6} replayed: gain ×{plain / drafted:.2f}; {right} of {tried} accepted", flush=True
    )


if __name__ == "__main__":
    main()
