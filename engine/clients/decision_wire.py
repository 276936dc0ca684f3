"""Decisions in the JSON of `POST /v1/decisions`: clients ask for them, `pravaha decide` prints them."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.api.decisions import DecisionAnswer, DecisionQuestion, DecisionRules, Decisions
from engine.clients.http_wire import WireError


def decision_body(
    model: str, text: str, questions: Sequence[DecisionQuestion], rules: DecisionRules
) -> dict[str, Any]:
    """The request; nothing is refused by the server, so that every answer has its probabilities."""
    return {
        "model": model,
        "input": text,
        "questions": [_question(one) for one in questions],
        "calibrate": rules.calibrate,
        "margin": rules.margin,
        "min_label_mass": 0,
    }


def decisions(
    data: Mapping[str, Any], questions: Sequence[DecisionQuestion], rules: DecisionRules
) -> Decisions:
    """The answers of a server.

    Raises:
        WireError: they are not those to the questions.
    """
    try:
        usage = data["usage"]
        return Decisions(
            data["model"],
            tuple(
                rules.read(question, _shares(answer), answer["label_mass"])
                for question, answer in zip(questions, data["answers"], strict=True)
            ),
            usage["input_tokens"],
            usage["input_tokens_details"]["cached_tokens"],
            usage["output_tokens"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(
            f"The server's decisions are not in Pravāha's format ({error!r})."
        ) from error


def answer_json(answer: DecisionAnswer) -> dict[str, Any]:
    """An answer as the API gives it; probabilities also of a refused one."""
    question = answer.question
    found: dict[str, Any] = {"type": question.kind, "name": question.name}
    if question.kind == "predicate":
        found["probability"] = answer.probability
    elif question.kind == "choice":
        found |= {
            "choice": answer.label,
            "confidence": answer.confidence,
            "probabilities": [
                {"value": value, "probability": share}
                for value, share in zip(question.options, answer.probabilities, strict=True)
            ],
        }
    else:
        found |= {
            "score": answer.score,
            "confidence": answer.confidence,
            "probabilities": [
                {"label": label, "value": value, "probability": share}
                for value, (label, share) in enumerate(
                    zip(question.options, answer.probabilities, strict=True), question.lowest
                )
            ],
        }
    return {**found, "label_mass": answer.label_mass, "outcome": answer.outcome}


def _question(question: DecisionQuestion) -> dict[str, Any]:
    body: dict[str, Any] = {"type": question.kind, "instructions": question.text}
    if question.name is not None:
        body["name"] = question.name
    if question.kind == "predicate":
        return body
    list_name, key = ("choices", "value") if question.kind == "choice" else ("levels", "label")
    body[list_name] = [
        {key: option} if description is None else {key: option, "description": description}
        for option, description in question.described()
    ]
    return body


def _shares(answer: Mapping[str, Any]) -> list[float]:
    if answer["type"] == "predicate":
        return [answer["probability"], 1 - answer["probability"]]
    return [one["probability"] for one in answer["probabilities"]]
