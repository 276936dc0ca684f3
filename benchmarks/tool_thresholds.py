"""Measures from which probabilities on a model's answer is a call, and writes the table of thresholds.

    python benchmarks/tool_thresholds.py --model FILE_OR_DIR [--cases 50] [--json FILE] [--write [TABLE]]

`CallDecider` is asked about the first cases of BFCL's sets (`benchmarks/tool_calls.py`) and about the turns
of `data/tool_turns.jsonl`, which have greetings, questions and agents' tasks with one to six tools:

* `fits`, one tool: 3 of 100 calls of `simple_python` are missed. Slope: the one that divides the turns with
  several tools into those with a call and those without with the fewest errors. `--heads` adds the turns of
  a result of `agent_decisions.py`, which have more tools.
* `several`, one tool: 2.5 standard deviations above the mean of `simple_python`, which needs one call. The
  fewest errors in 50 cases of `simple_python` and `parallel` lie lower, and give 6 of 100 others a call too
  many. Slope: the same of `multiple`, which needs one call too.
* `again`, one tool: after the first of several calls, whose result says that it is done, 1 of 10 further
  calls is missed. The slope is that of `fits`.

The probabilities are kept in the file after each batch, and turns that it has are not asked again. Two cores
take about six minutes for a model of 1.5B parameters, two for one of 0.5B.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.compact_json import compact_json
from benchmarks.machine import say, write_result
from benchmarks.tool_calls import SETS, Bfcl, Case, tool_of
from engine.api.config import EngineConfig
from engine.api.request import Request
from engine.api.tools import Tool
from engine.files.cache_dir import cache_dir
from engine.runtime.engine import AsyncPravahaEngine
from engine.text.tool_calls.choosing import form_of_template
from engine.text.tool_calls.decision import CallDecider
from engine.text.tool_calls.thresholds import CallThresholds, Threshold, key_of, own_table
from engine.text.tool_messages import template_tools

TURNS = Path(__file__).parent / "data" / "tool_turns.jsonl"
MISSED = 0.03
MISSED_AGAIN = 0.1
DEVIATIONS = 2.5
BATCH = 8
UNSET = CallThresholds(Threshold(0.0), Threshold(0.0), Threshold(0.0))
Rows = list[list[float]]
"""The log-probabilities of the tokens of each row that `CallDecider` asks for."""
Record = dict[str, Any]
"""What is kept of a turn: `group`, `tools` and `calls` (numbers), and `rows`."""


@dataclass(frozen=True)
class Turn:
    """A labelled turn.

    Attributes:
        id: of the turn.
        group: the set that it belongs to.
        messages: of the conversation.
        tools: functions.
        calls: the number of calls that is right.
    """

    id: str
    group: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    calls: int

    @property
    def follows_result(self) -> bool:
        """Whether the last message is a tool's result."""
        return bool(self.messages[-1]["role"] == "tool")


def turn_of(case: Case) -> Turn:
    """A turn of BFCL."""
    tools = [tool_of(one)["function"] for one in case["function"]]
    calls = len(case["answer"] or ())
    return Turn(case["id"], case["set"], case["question"][0], tools, calls)


def after_first_call(case: Case) -> Turn:
    """The turn after the first of the calls of a case."""
    ((name, values),) = case["answer"][0].items()
    arguments = {key: listed[0] for key, listed in values.items() if listed[0] != ""}
    function = {"name": name.replace(".", "_"), "arguments": arguments}
    call = {"id": "call00001", "type": "function", "function": function}
    result = '{"status": "ok", "result": "done"}'
    turn = turn_of(case)
    further = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": result, "tool_call_id": call["id"]},
    ]
    return Turn(
        f"{turn.id} after a call", "again", [*turn.messages, *further], turn.tools, turn.calls - 1
    )


def all_turns(bfcl: Bfcl, cases: int) -> list[Turn]:
    """The turns that a model is asked about."""
    sets = {name: bfcl.cases(name)[:cases] for name in SETS}
    own = [json.loads(line) for line in TURNS.read_text().splitlines()]
    return [
        *(turn_of(one) for of_set in sets.values() for one in of_set),
        *(after_first_call(one) for one in sets["parallel"]),
        *(
            Turn(f"turn {number}", "turns", one["messages"], one["tools"], one["calls"])
            for number, one in enumerate(own)
        ),
    ]


class Asked:
    """A model that is asked about turns."""

    def __init__(self, engine: AsyncPravahaEngine) -> None:
        self._engine = engine
        form = form_of_template(engine.tokenizer.tool_template)
        self._decider = CallDecider(engine.tokenizer, form, UNSET)

    def records(self, turns: Sequence[Turn]) -> list[Record]:
        """What is kept of each turn."""
        submitted = [self._submit(one) for one in turns]
        outputs = [[handle.wait_result(900) for handle in handles] for handles in submitted]
        return [
            {
                "group": turn.group,
                "tools": len(turn.tools),
                "calls": turn.calls,
                "follows_result": turn.follows_result,
                "rows": [[round(one, 4) for one in row.token_id_logprobs[0]] for row in rows],
            }
            for turn, rows in zip(turns, outputs, strict=True)
        ]

    def prompt_tokens(self, turn: Turn) -> int:
        """The number of tokens of a turn's prompt."""
        return len(self._prompt(turn))

    def _prompt(self, turn: Turn) -> list[int]:
        tools = [
            Tool(one["name"], one.get("description", ""), one["parameters"]) for one in turn.tools
        ]
        return self._engine.tokenizer.encode_chat(turn.messages, tools=template_tools(tools))

    def _submit(self, turn: Turn) -> list[Any]:
        names = [one["name"] for one in turn.tools]
        rows = self._decider.rows(self._prompt(turn), names, follows_result=turn.follows_result)
        return [self._engine.submit(Request(ids, sampling)) for ids, sampling in rows]


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[int(share * len(ordered))]


def far_above(values: Iterable[float]) -> float:
    """The value that lies `DEVIATIONS` standard deviations above the mean."""
    values = list(values)
    return mean(values) + DEVIATIONS * pstdev(values)


def fewest_errors(below: Sequence[float], above: Sequence[float]) -> float:
    """The threshold that divides two groups with the fewest errors, amid the widest gap of equal ones."""
    values = sorted({*below, *above})
    gaps = list(pairwise(values)) or [(values[0], values[0])]

    def price(gap: tuple[float, float]) -> tuple[int, float]:
        middle = mean(gap)
        errors = sum(one >= middle for one in below) + sum(one < middle for one in above)
        return errors, gap[0] - gap[1]

    return mean(min(gaps, key=price))


def slope(low: float, high: float, tools: float) -> float:
    """The slope that leads from one tool to a number of them, `low` to `high`."""
    return (high - low) / math.log(tools)


def thresholds(records: Iterable[Record]) -> dict[str, list[float]]:
    """The thresholds, each with one tool and as a slope."""
    records = list(records)
    scores = {
        name: [
            CallDecider.evidence(one["rows"], one["tools"])
            for one in records
            if one["group"] == name
        ]
        for name in SETS
    }
    fits = quantile((one.fits for one in scores["simple_python"]), MISSED)
    # A turn is decided on a call from this slope on.
    slopes: dict[bool, list[float]] = {True: [], False: []}
    for one in records:
        if one["group"] == "turns" and one["tools"] > 1 and not one["follows_result"]:
            score = CallDecider.evidence(one["rows"], one["tools"]).fits
            slopes[one["calls"] > 0].append(slope(score, fits, one["tools"]))
    falling = -fewest_errors(slopes[True], slopes[False])
    several = far_above(one.several for one in scores["simple_python"])
    tools = mean(one["tools"] for one in records if one["group"] == "multiple")
    most = far_above(one.several for one in scores["multiple"])
    again = [CallDecider.again(one["rows"]) for one in records if one["group"] == "again"]
    found = {
        "fits": (fits, falling),
        "several": (several, max(0.0, slope(several, most, tools))),
        "again": (quantile(again, MISSED_AGAIN), falling),
    }
    # Rounded down: the score at which a threshold lies reaches it.
    return {
        name: [math.floor(one * 1000) / 1000 for one in values] for name, values in found.items()
    }


def rightly_decided(
    records: Iterable[Record], measured: Mapping[str, Sequence[float]]
) -> dict[str, str]:
    """Of each group, how many turns are decided as their label says."""
    names = ("fits", "several", "again")
    chosen = CallThresholds(*(Threshold(*measured[name]) for name in names))
    groups: dict[str, list[bool]] = {}
    for one in records:
        tools, calls = one["tools"], one["calls"]
        if one["follows_result"]:
            is_right = (CallDecider.again(one["rows"]) >= chosen.again.of(tools)) == (calls > 0)
        else:
            is_right = CallDecider.evidence(one["rows"], one["tools"]).calls(chosen, tools) == calls
        groups.setdefault(one["group"], []).append(is_right)
    return {name: f"{sum(right)} of {len(right)}" for name, right in groups.items()}


def head_record(turn: Mapping[str, Any], tools: int) -> Record:
    """What `agent_decisions.py` has kept of a turn."""
    return {
        "group": "turns",
        "tools": tools,
        "calls": turn["calls"],
        "follows_result": len(turn["rows"]) == 1,
        "rows": turn["rows"],
    }


def add_to(file: Path, key: str, entry: Mapping[str, Any]) -> None:
    """Add a model to a table of thresholds."""
    table = json.loads(file.read_text()) if file.exists() else {}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(compact_json({**table, key: entry}) + "\n")


def measure(options: argparse.Namespace) -> None:
    """Ask a model about the turns that are missing, and print or write its thresholds."""
    turns = all_turns(Bfcl(cache_dir() / "bfcl"), options.cases)
    file: Path | None = options.json
    kept: dict[str, Record] = {}
    if file and file.exists():
        kept = json.loads(file.read_text())["turns"]
    engine = AsyncPravahaEngine(EngineConfig(model=options.model, name=options.model.stem))
    engine.start()
    try:
        engine.wait_ready(None)
        info, key = engine.model_info, key_of(engine.model_info, engine.tokenizer)
        asked, missing = Asked(engine), [one for one in turns if one.id not in kept]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            kept |= {
                one.id: record for one, record in zip(batch, asked.records(batch), strict=True)
            }
            say(f"{min(start + BATCH, len(missing))} of {len(missing)} turns")
            if file:
                write_result(file, {"model": info.name, "key": key, "turns": kept})
    finally:
        engine.shutdown()
    records = [kept[one.id] for one in turns]
    for head in json.loads(options.heads.read_text())["heads"].values() if options.heads else ():
        records += [head_record(one, head["tools"]) for one in head["turns"].values()]
    if not records[0]["rows"]:
        sys.exit("This model cannot be asked: its vocabulary has no digits of one token.")
    measured = thresholds(records)
    decided = rightly_decided(records, measured)
    print(json.dumps(measured), json.dumps(decided), sep="\n")
    if file:
        found = {"model": info.name, "key": key, "thresholds": measured, "decided": decided}
        write_result(file, found | {"turns": kept})
    if options.write:
        add_to(options.write, key, {"model": info.name, "thresholds": measured})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=50, help="of each set of BFCL")
    parser.add_argument("--heads", type=Path, help="a result of agent_decisions.py")
    parser.add_argument("--json", type=Path, help="keeps the probabilities, and goes on from them")
    parser.add_argument(
        "--write",
        type=Path,
        nargs="?",
        const=own_table(),
        metavar="TABLE",
        help="add the thresholds to a table; without a name to the user's own, which every server reads",
    )
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
