"""Whether calls are decided rightly behind the heads of agents: thousands of tokens, and many tools.

    python benchmarks/agent_decisions.py --model FILE [--trace NAME ...] [--request FILE ...] [--json FILE]

The turns of `data/agent_turns.jsonl` (tasks that need a call, questions that need none, and results of
calls) are asked behind the system prompt and the tools of traces at full size, or of requests: bodies of
chat completions or Messages as JSON, such as a client has sent. Prints each turn that is decided wrongly
with its score and the threshold, and the number of right ones. The probabilities are kept in the file after
each batch, and turns that it has are not asked again.
"""

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.agent_heads import first_request
from benchmarks.machine import say, write_result
from benchmarks.tool_thresholds import BATCH, Asked, Rows, Turn
from engine.api.config import EngineConfig
from engine.runtime.engine import AsyncPravahaEngine
from engine.text.tool_calls.decision import CallDecider
from engine.text.tool_calls.thresholds import CallThresholds, call_thresholds
from tests.traces.replay import load, names

TURNS = Path(__file__).parent / "data" / "agent_turns.jsonl"
ASKED = "THE TURN"
"""Stands in a head for what the user asks."""


@dataclass(frozen=True)
class Head:
    """What an agent's client writes around a question.

    Attributes:
        messages: with `ASKED` where the question belongs.
        tools: functions.
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]

    def turn(self, name: str, one: dict[str, Any]) -> Turn:
        """A labelled turn behind this head."""
        messages = [
            {**message, "content": message["content"].replace(ASKED, one["asked"])}
            for message in self.messages
        ]
        if "called" in one:
            function = {"name": self._tool_for(one["called"]), "arguments": one["called"]}
            call = {"id": "call00001", "type": "function", "function": function}
            messages += [
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "content": one["result"], "tool_call_id": call["id"]},
            ]
        return Turn(name, "head", messages, self.tools, one["calls"])

    def _tool_for(self, arguments: dict[str, Any]) -> str:
        """The tool that takes these arguments: clients call their shells and writers differently."""
        wanted = "write" if "content" in arguments else "sh"  # Bash, shell
        names = [str(tool["name"]) for tool in self.tools]
        return next((name for name in names if wanted in name.lower()), names[0])


def head_of(body: dict[str, Any]) -> Head:
    """The head of a request; the user's last text is the question."""
    blocks = [one for one in _blocks(body.get("system") or []) if not one.startswith("x-anthropic")]
    messages = [{"role": "system", "content": "\n\n".join(blocks)}] if blocks else []
    last = max(at for at, one in enumerate(body["messages"]) if one["role"] == "user")
    for at, message in enumerate(body["messages"]):
        texts = _blocks(message["content"])
        if at == last:
            texts[-1] = ASKED
        messages.append({"role": message["role"], "content": "\n\n".join(texts)})
    return Head(messages, [_function(one) for one in body["tools"]])


def _blocks(content: str | list[dict[str, Any]]) -> list[str]:
    return [content] if isinstance(content, str) else [one["text"] for one in content]


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    if "function" in tool:
        return dict(tool["function"])
    description = tool.get("description", "")
    return {
        "name": tool["name"],
        "description": description,
        "parameters": tool.get("input_schema") or {"type": "object", "properties": {}},
    }


def wrong(turn: Turn, rows: Rows, thresholds: CallThresholds) -> str | None:
    """How a turn is decided wrongly; None if it is decided rightly."""
    tools = len(turn.tools)
    if turn.follows_result:
        score, least = CallDecider.again(rows), thresholds.again.of(tools)
        # Above the threshold the model writes what it wants: likely a call from one half on.
        calls = int(score >= max(least, math.log(0.5)))
    else:
        evidence = CallDecider.evidence(rows, tools)
        score, least = evidence.fits, thresholds.fits.of(tools)
        calls = evidence.calls(thresholds, tools)
    if calls == turn.calls:
        return None
    return f"{calls} calls for {turn.calls}, score {score:.2f}, threshold {least:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--trace", nargs="*", default=["vibe", "claude_code"], choices=names())
    parser.add_argument("--request", nargs="*", type=Path, default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    heads = {name: head_of(first_request(load(name), ASKED)[1]) for name in options.trace}
    heads |= {file.stem: head_of(json.loads(file.read_text())) for file in options.request}
    asked = [json.loads(line) for line in TURNS.read_text().splitlines()]
    file: Path | None = options.json
    results: dict[str, Any] = (
        json.loads(file.read_text())["heads"] if file and file.exists() else {}
    )
    engine = AsyncPravahaEngine(EngineConfig(model=options.model, name=options.model.stem))
    engine.start()
    try:
        engine.wait_ready(None)
        thresholds = call_thresholds(engine.model_info, engine.tokenizer)
        if thresholds is None:
            sys.exit("This model has no thresholds: benchmarks/tool_thresholds.py measures them.")
        model = Asked(engine)
        for name, head in heads.items():
            turns = [head.turn(f"{at}: {one['asked']}", one) for at, one in enumerate(asked)]
            result = results.setdefault(name, {"turns": {}})
            result |= {"tokens": model.prompt_tokens(turns[0]), "tools": len(head.tools)}
            missing = [one for one in turns if one.id not in result["turns"]]
            for start in range(0, len(missing), BATCH):
                batch = missing[start : start + BATCH]
                for turn, record in zip(batch, model.records(batch), strict=True):
                    result["turns"][turn.id] = {"calls": turn.calls, "rows": record["rows"]}
                say(f"{name}: {start + len(batch)} of {len(missing)} turns")
                if file:
                    write_result(file, {"model": engine.model_info.name, "heads": results})
            for turn in turns:
                kept = result["turns"][turn.id]
                kept["problem"] = wrong(turn, kept["rows"], thresholds)
            report(name, result)
        if file:
            write_result(file, {"model": engine.model_info.name, "heads": results})
    finally:
        engine.shutdown()


def report(name: str, result: dict[str, Any]) -> None:
    """Print the number of right decisions behind a head, and the wrong ones."""
    problems = {id_: one["problem"] for id_, one in result["turns"].items() if one["problem"]}
    count, size = len(result["turns"]), f"{result['tokens']:,} tokens, {result['tools']} tools"
    print(f"{name} ({size}): {count - len(problems)} of {count} right")
    for id_, problem in problems.items():
        print(f"  {id_}: {problem}")


if __name__ == "__main__":
    main()
