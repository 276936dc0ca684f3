"""`classifier`: one label of several, by nearest centroid over examples or by keywords.

Inputs: `labels` (names, or names with keywords), `examples` ({label: [texts]} or [{text, label}]), and
`vector` with `vectors` ({label: [vectors]}) where embeddings are at hand.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.outputs.choice import Choice
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import source_text
from agents.text.relevance import cosine, tfidf_vectors
from agents.text.words import stem, terms, words

MAX_LABELS = 100
MARGIN = 0.1
"""Smallest lead of the best probability over the second; below it the agent abstains."""

_SHARPNESS = 8.0
_ASKED = re.compile(
    r"\b(?:as|into|labels?:?|one of:?|among|whether(?: it is)?)\s+"
    r"([\w' /-]{1,80}(?:(?:,|\bor\b|\|)[\w' /-]{1,80})+)",
    re.IGNORECASE,
)


async def run(task: AgentTask, context: ProcedureContext) -> Choice:
    """Label the text of the task."""
    vector = _vector(task.inputs.get("vector"))
    vectors = task.inputs.get("vectors")
    if vector and isinstance(vectors, Mapping):
        return _choose(_by_centroid(vector, vectors))
    text = source_text(task) or task.text
    examples = _examples(task.inputs.get("examples"))
    labels = _labels(task.inputs.get("labels"), task.text)
    if not examples and len(labels) < 2:
        return Choice(cannot_do="Give at least two labels, or examples by label.")
    if not text.strip():
        return Choice(cannot_do="There is no text to label.")
    return _choose(await context.in_thread(score_labels, text, labels, examples))


def score_labels(
    text: str, labels: Mapping[str, Sequence[str]], examples: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Evidence in [0, 1] for each label: similarity to its examples' centroid, or share of its keywords.

    Args:
        text: what is labelled.
        labels: keywords by label; a label's own words count too.
        examples: texts by label.
    """
    scores = {}
    flat = [(label, one) for label, texts in examples.items() for one in texts]
    vectors = tfidf_vectors([text, *(one for _, one in flat)])
    for label in dict.fromkeys([*labels, *examples]):
        own = [vector for (name, _), vector in zip(flat, vectors[1:], strict=True) if name == label]
        centroid: dict[str, float] = {}
        for vector in own:
            for term, weight in vector.items():
                centroid[term] = centroid.get(term, 0.0) + weight / len(own)
        norm = math.sqrt(sum(weight**2 for weight in centroid.values()))
        similarity = cosine(vectors[0], centroid) / norm if norm else 0.0
        scores[label] = max(similarity, _keyword_share(text, [label, *labels.get(label, ())]))
    return scores


def _keyword_share(text: str, keywords: Sequence[str]) -> float:
    """Keywords that occur, saturating: one gives 0.4, three 0.78."""
    own = set(terms(text)) | {stem(word.text.lower()) for word in words(text)}
    hits = sum(
        1
        for keyword in dict.fromkeys(keywords)
        if (parts := [stem(word.text.lower()) for word in words(keyword)]) and set(parts) <= own
    )
    return 1 - 0.6**hits


def _choose(scores: Mapping[str, float]) -> Choice:
    if not scores:
        return Choice(cannot_do="The vectors have different lengths, or there are none.")
    if not any(scores.values()):
        even = {label[:80]: 1 / len(scores) for label in scores}
        return Choice(label="", probabilities=even, abstained=True)
    highest = max(scores.values())
    weights = {label: math.exp(_SHARPNESS * (score - highest)) for label, score in scores.items()}
    total = sum(weights.values())
    probabilities = {label[:80]: weight / total for label, weight in weights.items()}
    ranked = sorted(probabilities.values(), reverse=True)
    lead = ranked[0] - (ranked[1] if len(ranked) > 1 else 0.0)
    best = max(probabilities, key=lambda label: probabilities[label])
    rounded = {label: round(value, 4) for label, value in probabilities.items()}
    return Choice(label=best, probabilities=rounded, abstained=lead < MARGIN)


def _by_centroid(vector: list[float], vectors: Mapping[str, Any]) -> dict[str, float]:
    """Cosine similarity of a vector to the mean of each label's vectors, mapped to [0, 1]."""
    scores = {}
    for label, rows in list(vectors.items())[:MAX_LABELS]:
        own = [_vector(row) for row in rows] if isinstance(rows, list) else []
        own = [row for row in own if len(row) == len(vector)]
        if not own:
            return {}
        mean = [sum(column) / len(own) for column in zip(*own, strict=True)]
        lengths = math.hypot(*vector) * math.hypot(*mean)
        product = sum(a * b for a, b in zip(vector, mean, strict=True))
        scores[str(label)] = (1 + product / lengths) / 2 if lengths else 0.0
    return scores


def _vector(value: Any) -> list[float]:
    if not isinstance(value, list) or not all(isinstance(one, int | float) for one in value):
        return []
    return [float(one) for one in value] if all(math.isfinite(one) for one in value) else []


def _labels(value: Any, task: str) -> dict[str, list[str]]:
    if isinstance(value, Mapping):
        pairs = list(value.items())[:MAX_LABELS]
        return {
            str(name): [str(one) for one in words_] if isinstance(words_, list) else []
            for name, words_ in pairs
        }
    if isinstance(value, list):
        return {str(name): [] for name in value[:MAX_LABELS]}
    match = _ASKED.search(task)
    names = re.split(r"\s*(?:,|\bor\b|\|)\s*", match[1]) if match else []
    return {name.strip(): [] for name in names[:MAX_LABELS] if name.strip()}


def _examples(value: Any) -> dict[str, list[str]]:
    if isinstance(value, Mapping):
        pairs = list(value.items())[:MAX_LABELS]
        return {str(k): [str(one) for one in v] for k, v in pairs if isinstance(v, list)}
    found: dict[str, list[str]] = {}
    for one in value if isinstance(value, list) else []:
        if isinstance(one, Mapping) and "text" in one and "label" in one:
            found.setdefault(str(one["label"]), []).append(str(one["text"]))
    return found
