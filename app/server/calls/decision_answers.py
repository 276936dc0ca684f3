"""Answers to decisions in the shape of OpenAI's endpoint, which vLLM's server has too.

`label_mass` and `abstained` are ours: other servers say them elsewhere, or not at all.
"""

from typing import Any

from app.server.wire.decisions_schemas import DecisionQuestion
from engine.api.decisions import DecisionAnswer


def decision_answer(question: DecisionQuestion, answer: DecisionAnswer) -> dict[str, Any]:
    """The answer to a question; a refusal if the model wanted to say something else than a label."""
    if answer.outcome == "refused":
        return {"type": "refusal", "name": question.name, "label_mass": answer.label_mass}
    found = {"type": question.type, "name": question.name, **_read(question, answer)}
    return {
        **found,
        "label_mass": answer.label_mass,
        "abstained": answer.outcome == "abstained",
    }


def _read(question: DecisionQuestion, answer: DecisionAnswer) -> dict[str, Any]:
    if question.type == "predicate":
        return {"probability": answer.probability}
    shares = answer.probabilities
    if question.type == "choice":
        values = [one.value for one in question.choices or ()]
        return {
            "choice": values[answer.best],
            "confidence": answer.confidence,
            "probabilities": [
                {"value": value, "probability": share}
                for value, share in zip(values, shares, strict=True)
            ],
        }
    return {
        "score": answer.score,
        "confidence": answer.confidence,
        "probabilities": [
            {"label": one.label, "value": value, "probability": share}
            for value, (one, share) in enumerate(zip(question.levels or (), shares, strict=True))
        ],
    }
