"""Which one-token decisions help with which model, as `benchmarks/agent_questions.py` measured it.

A question helps if the model's answers, its abstentions replaced by the detector's value, are right more
often than the detector's value alone, in a sign test on the items where the two differ (p < 0.05). A
question that was not measured with the loaded model is off.
"""

from functools import cache
from importlib import resources
from typing import Any

import orjson


@cache
def question_table() -> dict[str, dict[str, Any]]:
    """Measured results by model identity, then by question."""
    text = resources.files("agents.model").joinpath("question_table.json").read_bytes()
    table: dict[str, dict[str, Any]] = orjson.loads(text)
    return table


def helpful_questions(identity: str) -> frozenset[str]:
    """Names of the questions that help with a model."""
    measured = question_table().get(identity, {}).get("questions", {})
    return frozenset(name for name, result in measured.items() if result["helps"])
