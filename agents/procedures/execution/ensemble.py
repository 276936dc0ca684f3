"""`ensemble`: one answer out of several by weighted vote; answers that say the same are counted together."""

import re
from collections.abc import Mapping
from typing import Any

from agents.outputs.agreement import Agreement, AnswerGroup
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded
from agents.text.numbers import numbers, read_number
from agents.text.relevance import cosine, tfidf_vectors
from agents.text.words import terms

MAX_ANSWERS = 200
SIMILAR = 0.6
"""Cosine similarity of TF-IDF vectors from which two long answers count as one."""

_SHORT_WORDS = 3
_YES = frozenset(["yes", "true", "correct", "y", "1.0"])
_NO = frozenset(["no", "false", "incorrect", "wrong", "n"])
_PREFIX = re.compile(r"^(?:the )?(?:final )?answer(?: is)?\s*:?\s*", re.IGNORECASE)


async def run(task: AgentTask, context: ProcedureContext) -> Agreement:
    """Vote over the input `answers`, weighted by `weights` if given; or over the outputs of earlier nodes."""
    answers = _answers(task.inputs)
    if not answers and task.document:
        answers = [line.strip(" -*•\t") for line in task.document.split("\n") if line.strip()]
    if not answers:
        return Agreement(cannot_do="There are no answers to reconcile: give them as `answers`.")
    weights = _weights(task.inputs.get("weights"), len(answers))
    return await context.in_thread(vote, answers[:MAX_ANSWERS], weights[:MAX_ANSWERS])


def vote(answers: list[str], weights: list[float]) -> Agreement:
    """The answer of the group with most weight; a tie between groups leaves it empty."""
    groups = _groups(answers)
    totals = [sum(weights[member] for member in group) for group in groups]
    order = sorted(range(len(groups)), key=lambda i: (-totals[i], groups[i][0]))
    whole = sum(totals)
    shown = [
        AnswerGroup(answer=bounded(answers[groups[i][0]], 4_000), members=groups[i]) for i in order
    ]
    tied = len(order) > 1 and totals[order[0]] == totals[order[1]]
    if not whole or tied:
        share = totals[order[0]] / whole if whole else 0.0
        return Agreement(
            agreement=share,
            groups=shown,
            cannot_do="The answers are tied." if whole else "All weights are zero.",
        )
    best = _representative(answers, groups[order[0]], weights)
    return Agreement(
        answer=bounded(best, 60_000), agreement=round(totals[order[0]] / whole, 4), groups=shown
    )


def _groups(answers: list[str]) -> list[list[int]]:
    """Numbers of answers that say the same, in the order of their first members."""
    keys = [normalise(answer) for answer in answers]
    vectors = tfidf_vectors([*answers, *answers])[: len(answers)]
    groups: list[list[int]] = []
    for i, key in enumerate(keys):
        for group in groups:
            first = group[0]
            if key == keys[first] or (
                _is_long(answers[i])
                and _is_long(answers[first])
                and _same_numbers(answers[i], answers[first])
                and cosine(vectors[i], vectors[first]) >= SIMILAR
            ):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def normalise(answer: str) -> str:
    """An answer without case, punctuation and phrases such as `The answer is`; numbers by their value."""
    text = _PREFIX.sub("", answer.strip()).strip(" .!\"'`*_")
    number = read_number(text.replace("$", "").strip())
    if number is not None and number.value is not None:
        return f"{number.value}"
    plain = " ".join(re.findall(r"[^\W_]+", text.casefold()))
    first = plain.split(" ")[0] if plain else ""
    if first in _YES and len(plain.split()) <= 2:
        return "yes"
    if first in _NO and len(plain.split()) <= 2:
        return "no"
    return re.sub(r"^(?:the|a|an) ", "", plain)


def _is_long(text: str) -> bool:
    return len(terms(text)) >= _SHORT_WORDS


def _same_numbers(one: str, other: str) -> bool:
    return {n.text for n in numbers(one)} == {n.text for n in numbers(other)}


def _representative(answers: list[str], group: list[int], weights: list[float]) -> str:
    """The answer most similar to the rest of its group; the heavier, then the earlier of equals."""
    vectors = tfidf_vectors([answers[member] for member in group])
    scores = [
        (sum(cosine(vector, other) for other in vectors), weights[member], -member)
        for vector, member in zip(vectors, group, strict=True)
    ]
    return answers[-max(scores)[2]]


def _answers(inputs: Mapping[str, Any]) -> list[str]:
    given = inputs.get("answers")
    if isinstance(given, Mapping):
        given = list(given.values())
    if not isinstance(given, list):
        # Outputs of earlier nodes have their answer under a known member.
        given = [
            value.get("text") or value.get("answer") or value.get("label")
            for name, value in inputs.items()
            if name != "weights" and isinstance(value, Mapping) and not value.get("cannot_do")
        ]
    return [_text(one) for one in given if one not in (None, "")]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("text") or value.get("answer") or value.get("label") or ""
    return str(value)


def _weights(value: Any, count: int) -> list[float]:
    if isinstance(value, list) and len(value) == count:
        numbers_ = [one for one in value if isinstance(one, int | float) and 0 <= one < 1e9]
        if len(numbers_) == count:
            return [float(one) for one in numbers_]
    return [1.0] * count
