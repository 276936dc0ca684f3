"""`summarizer`: an extractive summary: the highest-ranked sentences of a text in their order.

Ranks are TextRank's, raised by position, names and numbers; a sentence similar to a chosen one is skipped.
"""

import re

from agents.outputs.summary import Summary
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded, source_text
from agents.text.language import language_of_text
from agents.text.numbers import numbers
from agents.text.proper_names import proper_names
from agents.text.relevance import cosine, tfidf_vectors
from agents.text.sentences import Sentence, sentences
from agents.text.textrank import textrank

DEFAULT_RATIO = 0.3
MAX_RATIO = 0.9
_SIMILAR = 0.6
_MIN_SENTENCES = 2
_COUNT = re.compile(
    r"\b(\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten) sentences?\b", re.IGNORECASE
)
_NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


async def run(task: AgentTask, context: ProcedureContext) -> Summary:
    """Summarise the text of the task."""
    text = source_text(task)
    if not text.strip():
        return Summary(cannot_do="There is no text to summarise.")
    ratio = task.inputs.get("ratio", DEFAULT_RATIO)
    if not isinstance(ratio, int | float) or not 0 < ratio <= MAX_RATIO:
        return Summary(cannot_do=f"The ratio must be above 0 and at most {MAX_RATIO}.")
    match = _COUNT.search(task.text)
    count = None if match is None else _count(match[1])
    return await context.in_thread(summarise, text, float(ratio), count)


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _NAMES.index(text.lower())


def summarise(text: str, ratio: float = DEFAULT_RATIO, count: int | None = None) -> Summary:
    """The summary of a text.

    Args:
        text: the source.
        ratio: characters that the summary may have, as a share of those of the source.
        count: number of sentences instead of a ratio.
    """
    found = [one for one in sentences(text) if not one.heading and any(map(str.isalnum, one.text))]
    if len(found) < _MIN_SENTENCES:
        return Summary(
            cannot_do="The text has fewer than two sentences: there is nothing to condense."
        )
    scores = _scores(found)
    vectors = tfidf_vectors([one.text for one in found])
    room = ratio * len(text)
    chosen: list[int] = []
    for index in sorted(range(len(found)), key=lambda i: (-scores[i], i)):
        if count is not None and len(chosen) >= count:
            break
        length = len(found[index].text)
        if count is None and chosen and length > room:
            continue
        if any(cosine(vectors[index], vectors[other]) > _SIMILAR for other in chosen):
            continue
        chosen.append(index)
        room -= length
        if count is None and room <= 0:
            break
    kept = [found[index] for index in sorted(chosen)]
    summary = " ".join(" ".join(one.text.split()) for one in kept)
    return Summary(
        text=bounded(summary, 60_000),
        ratio=round(len(summary) / len(text), 4),
        kept_names=round(_kept_names(text, summary), 4),
        lines=[one.line for one in kept[:1_000]],
        language=language_of_text(text) or "",
    )


def _scores(found: list[Sentence]) -> list[float]:
    ranks = textrank([one.text for one in found])
    highest = max(ranks) or 1.0
    scores = []
    for position, (sentence, rank) in enumerate(zip(found, ranks, strict=True)):
        score = rank / highest
        score += 0.3 / (1 + position)
        score += 0.1 * min(3, len(numbers(sentence.text)) + len(proper_names(sentence.text)))
        scores.append(score if len(sentence.text) > 20 else score / 2)
    return scores


def _kept_names(source: str, summary: str) -> float:
    names = {name.text for name in proper_names(source) if not name.begins_sentence}
    kept = {name for name in names if name in summary}
    return len(kept) / len(names) if names else 1.0
