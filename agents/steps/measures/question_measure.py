"""`measure_questions`: which one-token decisions help with a model.

`question_items.jsonl` has labelled items for every registered question. The *baseline* is what the cluster
has without the model: the detector's own value, or the simple rule of `BASELINES`. *With the model* means its
label where it does not abstain, and the baseline's where it does. A question helps if the model corrects more
items than it spoils, in a one-sided sign test on the items where both differ (p < 0.05).
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from math import comb
from typing import Any

from agents.model.question import Question
from agents.steps.measures.bench import Bench
from agents.steps.questions import QUESTIONS

SIGNIFICANCE = 0.05
Item = Mapping[str, str]


def words(text: str) -> set[str]:
    """The words of a text of four letters and more, without their ends."""
    return {word[:5] for word in re.findall(r"[a-z0-9]{4,}", text.lower())}


def overlap(subject: str) -> float:
    """Share of the first line's words that the following lines have."""
    first, _, rest = subject.partition("\n")
    wanted = words(first.partition(":")[2])
    return len(wanted & words(rest)) / max(1, len(wanted))


BASELINES: Mapping[str, Callable[[Item, Question], str]] = {
    "confirm_finding": lambda item, question: question.options[0],
    "severity": lambda item, question: item["baseline"],
    "relevance": lambda item, question: question.options[overlap(item["subject"]) == 0],
    "duplicate": lambda item, question: question.options[overlap(item["subject"]) < 0.5],
    "pass_fail": lambda item, question: question.options[0],
    "better": lambda item, question: question.options[0],
    "supported": lambda item, question: question.options[overlap(item["subject"]) < 0.5],
}


@cache
def question_items() -> tuple[Item, ...]:
    """The labelled items: `question`, `subject`, `label`, and `baseline` where a detector has a value."""
    file = resources.files("agents.steps.measures").joinpath("question_items.jsonl")
    return tuple(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())


def sign_test(better: int, worse: int) -> float:
    """One-sided p of at least `better` successes in fair throws."""
    throws = better + worse
    return float(sum(comb(throws, k) for k in range(better, throws + 1)) / 2**throws)


async def measure_questions(bench: Bench) -> dict[str, dict[str, Any]]:
    """Results by question.

    Raises:
        ModelFailure: the engine failed.
    """
    shared = bench.layout.shared(task="Review what is shown.")
    results = {}
    for name, question in QUESTIONS.items():
        asked = [item for item in question_items() if item["question"] == name]
        pairs = [(question, item["subject"]) for item in asked]
        decisions, _ = await bench.decider.decide(shared, pairs)
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
        for _ in asked:
            bench.tick()
    return results
