"""Measures from which probabilities on a model's answer is a call, and writes the table of thresholds.

    python benchmarks/tool_thresholds.py --model FILE_OR_DIR [--cases 50] [--write]

`CallDecider` is asked about the first cases of BFCL's sets (`benchmarks/tool_calls.py`) and about the turns
of `data/tool_turns.jsonl`, which have greetings, questions and agents' tasks with one to six tools:

* `fits`, one tool: 3 of 100 calls of `simple_python` are missed. Slope: that of thresholds that divide the
  turns with a call from those without, where several tools are offered.
* `several`, one tool: the fewest errors in `simple_python` and `parallel`. Slope: 3 of 100 of `multiple`,
  which need one call, get more.
* `again`, one tool: after the first of several calls, whose result says that it is done, 1 of 10 further
  calls is missed. The slope is that of `fits`.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tool_calls import Bfcl, Case, tool_of
from engine.api.config import EngineConfig
from engine.api.request import Request, RequestOutput
from engine.api.tools import Tool
from engine.files.cache_dir import cache_dir
from engine.runtime.engine import AsyncPravahaEngine
from engine.text.tool_calls import thresholds as thresholds_module
from engine.text.tool_calls.choosing import form_of_template
from engine.text.tool_calls.decision import CallDecider, CallEvidence
from engine.text.tool_calls.thresholds import CallThresholds, Threshold, thresholds_key
from engine.text.tool_messages import template_tools

TURNS = Path(__file__).parent / "data" / "tool_turns.jsonl"
TABLE = Path(thresholds_module.__file__).with_suffix(".json")
MISSED = 0.03
MISSED_AGAIN = 0.1
BATCH = 8
UNSET = CallThresholds(Threshold(0.0), Threshold(0.0), Threshold(0.0))
Turn = dict[str, Any]
"""`messages`, `tools` (functions) and `calls`, the number of calls that are right."""


class Asked:
    """A model that is asked about turns."""

    def __init__(self, engine: AsyncPravahaEngine) -> None:
        self._engine = engine
        form = form_of_template(engine.tokenizer.chat_template)
        self.decider = CallDecider(engine.tokenizer, form, UNSET)

    def evidence(self, turns: Sequence[Turn]) -> list[CallEvidence]:
        """The evidence of each turn."""
        return [self.decider.evidence(one) for one in self._outputs(turns, follows_result=False)]

    def again(self, turns: Sequence[Turn]) -> list[float]:
        """The score of another call of each turn, whose last message is a result."""
        return [self.decider.again(one) for one in self._outputs(turns, follows_result=True)]

    def _outputs(
        self, turns: Sequence[Turn], *, follows_result: bool
    ) -> Iterable[list[RequestOutput]]:
        for start in range(0, len(turns), BATCH):
            batch = [self._submit(one, follows_result) for one in turns[start : start + BATCH]]
            for handles in batch:
                yield [handle.wait_result(600) for handle in handles]

    def _submit(self, turn: Turn, follows_result: bool) -> list[Any]:
        tools = [
            Tool(one["name"], one.get("description", ""), one["parameters"])
            for one in turn["tools"]
        ]
        prompt = self._engine.tokenizer.encode_chat(turn["messages"], tools=template_tools(tools))
        names = [tool.name for tool in tools]
        rows = self.decider.rows(prompt, names, follows_result=follows_result)
        return [self._engine.submit(Request(ids, sampling)) for ids, sampling in rows]


def turn_of(case: Case) -> Turn:
    """A turn of BFCL."""
    return {
        "messages": case["question"][0],
        "tools": [tool_of(one)["function"] for one in case["function"]],
        "calls": len(case["answer"] or ()),
    }


def after_first_call(case: Case) -> Turn:
    """The turn after the first of the calls of a case."""
    ((name, values),) = case["answer"][0].items()
    arguments = {key: listed[0] for key, listed in values.items() if listed[0] != ""}
    function = {"name": name.replace(".", "_"), "arguments": arguments}
    call = {"id": "call00001", "type": "function", "function": function}
    result = '{"status": "ok", "result": "done"}'
    turn = turn_of(case)
    turn["messages"] = [
        *turn["messages"],
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": result, "tool_call_id": call["id"]},
    ]
    return turn


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[int(share * len(ordered))]


def fewest_errors(below: Sequence[float], above: Sequence[float]) -> float:
    """The threshold that divides two groups with the fewest errors."""
    return min(
        sorted([*below, *above]),
        key=lambda at: sum(one >= at for one in below) + sum(one < at for one in above),
    )


def slope(one: float, wanted: float, tools: float) -> float:
    """The slope with which a threshold is `wanted` at a number of tools."""
    return (wanted - one) / math.log(tools)


def measure(asked: Asked, bfcl: Bfcl, cases: int) -> dict[str, tuple[float, float]]:
    """The thresholds, each with one tool and as a slope."""
    sets = {name: bfcl.cases(name)[:cases] for name in ("simple_python", "parallel", "multiple")}
    found = {name: asked.evidence([turn_of(one) for one in of]) for name, of in sets.items()}
    irrelevant = asked.evidence([turn_of(one) for one in bfcl.cases("irrelevance")[:cases]])
    fits = quantile((one.fits for one in found["simple_python"]), MISSED)
    print(f"irrelevance below the threshold: {mean(one.fits < fits for one in irrelevant):.2f}")
    turns = [json.loads(line) for line in TURNS.read_text().splitlines()]
    asks = [one for one in turns if one["messages"][-1]["role"] == "user" and len(one["tools"]) > 1]
    slopes = []
    for count in sorted({len(one["tools"]) for one in asks}):
        of_count = [one for one in asks if len(one["tools"]) == count]
        scores = [one.fits for one in asked.evidence(of_count)]
        groups: dict[bool, list[float]] = {True: [], False: []}
        for one, score in zip(of_count, scores, strict=True):
            groups[one["calls"] > 0].append(score)
        slopes.append(slope(fits, fewest_errors(groups[False], groups[True]), count))
    several = fewest_errors(
        [one.several for one in found["simple_python"]], [one.several for one in found["parallel"]]
    )
    tools = mean(len(one["function"]) for one in sets["multiple"])
    most = quantile((one.several for one in found["multiple"]), 1 - MISSED)
    again = asked.again([after_first_call(one) for one in sets["parallel"]])
    return {
        "fits": (round(fits, 3), round(mean(slopes), 3)),
        "several": (round(several, 3), round(max(0.0, slope(several, most, tools)), 3)),
        "again": (round(quantile(again, MISSED_AGAIN), 3), round(mean(slopes), 3)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=50, help="of each set of BFCL")
    parser.add_argument("--write", action="store_true", help=f"update {TABLE.name}")
    options = parser.parse_args()
    engine = AsyncPravahaEngine(EngineConfig(model=options.model, name=options.model.stem))
    engine.start()
    try:
        engine.wait_ready(None)
        measured = measure(Asked(engine), Bfcl(cache_dir() / "bfcl"), options.cases)
        info = engine.model_info
        key = thresholds_key(info, engine.tokenizer)
    finally:
        engine.shutdown()
    print(json.dumps(measured))
    if options.write:
        table = json.loads(TABLE.read_text())
        table[key] = {"model": info.name, "thresholds": measured}
        TABLE.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
