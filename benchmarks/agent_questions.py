"""Measures which one-token decisions help with a model, and writes the table that profiles read.

    python benchmarks/agent_questions.py [--model FILE_OR_DIR] [--write]

`data/agent_questions.jsonl` has labelled items for every registered question. The *baseline* is what the
cluster has without the model: the detector's own value, or the simple rule of `BASELINES`. *With the model*
means its label where it does not abstain, and the baseline's where it does. A question helps if the model
corrects more items than it spoils, in a one-sided sign test on the items where both differ (p < 0.05).
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agents.model import question_table as table_module
from agents.model.decisions import Decider
from agents.model.layout import SharedLayout
from agents.model.question import Question
from agents.model.session import ModelSession
from agents.steps.questions import QUESTIONS
from engine.api.config import EngineConfig
from engine.clients.in_process import InProcessClient
from engine.models.demo import SMOLLM2
from engine.models.store import ModelStore
from engine.runtime.engine import AsyncPravahaEngine

ITEMS = Path(__file__).parent / "data" / "agent_questions.jsonl"
TABLE = Path(table_module.__file__).with_suffix(".json")
SIGNIFICANCE = 0.05
Item = dict[str, str]


def words(text: str) -> set[str]:
    """The words of a text of four letters and more, without their ends."""
    return {word[:5] for word in re.findall(r"[a-z0-9]{4,}", text.lower())}


def overlap(subject: str) -> float:
    """Share of the first line's words that the following lines have."""
    first, _, rest = subject.partition("\n")
    wanted = words(first.partition(":")[2])
    return len(wanted & words(rest)) / max(1, len(wanted))


BASELINES: dict[str, Callable[[Item, Question], str]] = {
    "confirm_finding": lambda item, question: question.options[0],
    "severity": lambda item, question: item["baseline"],
    "relevance": lambda item, question: question.options[overlap(item["subject"]) == 0],
    "duplicate": lambda item, question: question.options[overlap(item["subject"]) < 0.5],
    "pass_fail": lambda item, question: question.options[0],
    "better": lambda item, question: question.options[0],
    "supported": lambda item, question: question.options[overlap(item["subject"]) < 0.5],
}


def sign_test(better: int, worse: int) -> float:
    """One-sided p of at least `better` successes in fair throws."""
    throws = better + worse
    return sum(comb(throws, k) for k in range(better, throws + 1)) / 2**throws


async def measure(session: ModelSession, items: list[Item]) -> dict[str, dict[str, Any]]:
    """Results by question."""
    layout = SharedLayout(session)
    decider = Decider(session, layout)
    shared = layout.shared(task="Review what is shown.")
    results = {}
    for name, question in QUESTIONS.items():
        asked = [item for item in items if item["question"] == name]
        decisions, _ = await decider.decide(shared, [(question, item["subject"]) for item in asked])
        labels = [item["label"] for item in asked]
        baseline = [BASELINES[name](item, question) for item in asked]
        model = [one.value(before) for one, before in zip(decisions, baseline, strict=True)]
        right = [one == label for one, label in zip(model, labels, strict=True)]
        before = [one == label for one, label in zip(baseline, labels, strict=True)]
        better = sum(a and not b for a, b in zip(right, before, strict=True))
        worse = sum(b and not a for a, b in zip(right, before, strict=True))
        alone = sum(one.label == label for one, label in zip(decisions, labels, strict=True))
        p = sign_test(better, worse)
        results[name] = {
            "items": len(asked),
            "baseline": round(sum(before) / len(asked), 3),
            "with_model": round(sum(right) / len(asked), 3),
            "model_alone": round(alone / len(asked), 3),
            "abstained": sum(one.abstained for one in decisions),
            "corrected": better,
            "spoiled": worse,
            "p": round(p, 4),
            "helps": better > worse and p < SIGNIFICANCE,
        }
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="a model (default: the demo model)")
    parser.add_argument(
        "--name", default="", help="its name as installed, which is part of its identity"
    )
    parser.add_argument("--write", action="store_true", help=f"update {TABLE.name}")
    options = parser.parse_args()
    path = options.model or ModelStore().add(SMOLLM2.name).path
    items = [json.loads(line) for line in ITEMS.read_text().splitlines()]
    engine = AsyncPravahaEngine(EngineConfig(model=path, name=options.name or SMOLLM2.name))
    engine.start()
    try:
        engine.wait_ready(None)
        session = ModelSession(InProcessClient(engine))
        results = asyncio.run(measure(session, items))
        model = session.model()
        identity = session.identity()
    finally:
        engine.shutdown()
    for name, result in results.items():
        print(f"{name:16}", "  ".join(f"{key} {value}" for key, value in result.items()))
    if options.write:
        table = json.loads(TABLE.read_text())
        table[identity] = {"model": model.name, "questions": results}
        TABLE.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
