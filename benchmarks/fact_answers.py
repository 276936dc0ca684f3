"""Stage *answers* of `benchmarks/retrieval.py`: what the demo model answers, cites and declines.

The collection has the invented facts of `fact_documents.py` among real documentation. The judge of an answer
is not the engine's own check but a rule over the invented facts: a sentence is supported by what it cites if
every name and number in it is in the cited text, and a negation is only where the text has one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fact_documents import FactDocuments, LabelledSentence, Question, made_facts
from benchmarks.indexed_texts import index_files, ours, remembering
from benchmarks.known_items import known_items
from benchmarks.machine import say
from benchmarks.retrieval_peers import Peers

Answer = Mapping[str, Any]
MARK = re.compile(r"\[(\d+)\]")
NAME = re.compile(r"\b(?:[A-Z][\w-]*|[\w-]*\d[\w-]*)\b")
NEGATION = re.compile(r"\b(?:not|never|no|cannot|n't)\b")
ASKED_TWICE = 10


def measure_answers(
    peers: Peers, files: Sequence[Path], work: Path, *, asked: int, documented: int
) -> dict[str, Any]:
    """Ask for facts, for documented behaviour, over two hops, and for what is not there.

    Args:
        files: documentation around the facts.
        asked: limit of the questions with one hop and with two.
        documented: limit of the questions about the documentation.
    """
    facts = made_facts()
    process = ours(peers)
    remembering(peers, work)
    index_files(peers, [*facts.write(work / "facts"), *files], work, "answers")
    process.call("embed_again")
    documents = [one.query for one in known_items(files, documented) if one.kind == "question"]
    groups: dict[str, list[Question]] = {
        "one hop": list(facts.single_hop[:asked]),
        "two hops": list(facts.multi_hop[:asked]),
        "documentation": [Question(query, "") for query in documents],
        "no answer": list(facts.unanswerable),
    }
    answers: dict[str, list[Answer]] = {}
    for name, questions in groups.items():
        say(f"{len(questions)} questions: {name}")
        texts = [one.text for one in questions]
        answers[name] = process.call("answers", questions=texts)["answers"]
    every = [one for found in answers.values() for one in found]
    invented = [*answers["one hop"], *answers["two hops"], *answers["no answer"]]
    return {
        "questions": {name: len(questions) for name, questions in groups.items()},
        "citations": citations(every) | support(invented),
        "outcomes": {name: outcomes(found) for name, found in answers.items()},
        "declined of no answer, by kind": declined_by_kind(
            groups["no answer"], answers["no answer"]
        ),
        "right": {name: right(groups[name], answers[name]) for name in ("one hop", "two hops")},
        "check of labelled sentences": checked(peers, facts),
        "first token": first_tokens(peers, [*facts.single_hop[:ASKED_TWICE]]),
    }


def citations(answers: Iterable[Answer]) -> dict[str, Any]:
    """How many citations there are, and which share exists and opens.

    One exists if its number is that of a source and the source's bytes in its file are its text.
    """
    marks, existing, quotes, opening = 0, 0, 0, 0
    for answer in answers:
        sources = {one["n"]: one for one in answer["sources"]}
        for mark in MARK.finditer(answer["text"]):
            marks += 1
            source = sources.get(int(mark[1]))
            existing += source is not None and _opens(source, source["file"])
        for quote in answer["quotes"]:
            quotes += 1
            opening += _opens(quote, sources[quote["n"]]["file"])
    return {
        "citations": marks,
        "exist": share(existing, marks),
        "quotes": quotes,
        "quotes open": share(opening, quotes),
    }


def support(answers: Iterable[Answer]) -> dict[str, Any]:
    """Which share of the sentences that cite is supported by what they cite, by the rule."""
    verdicts = [
        supported(
            sentence["text"],
            " ".join(one["text"] for one in answer["sources"] if one["n"] in sentence["cites"]),
        )
        for answer in answers
        for sentence in answer["sentences"]
        if sentence["cites"]
    ]
    return {"sentences that cite": len(verdicts), "supported": share(sum(verdicts), len(verdicts))}


def supported(sentence: str, text: str) -> bool:
    """The rule: names and numbers of the sentence are in the text, and so is its negation."""
    sentence = MARK.sub("", sentence)
    words = set(re.findall(r"[\w-]+", text.lower()))
    names = [name.lower() for name in NAME.findall(sentence[:1].lower() + sentence[1:])]
    negated = bool(NEGATION.search(sentence)) and not NEGATION.search(text)
    return not negated and all(name in words for name in names)


def outcomes(answers: Sequence[Answer]) -> dict[str, float]:
    """Share of each outcome."""
    counts = Counter(one["outcome"] for one in answers)
    return {name: share(count, len(answers)) or 0.0 for name, count in counts.items()}


def declined_by_kind(
    questions: Sequence[Question], answers: Sequence[Answer]
) -> dict[str, float | None]:
    """Share of the questions without an answer that no supported answer was given to."""
    kinds = sorted({one.kind for one in questions})
    declined = [
        (question.kind, answer["outcome"] != "answered")
        for question, answer in zip(questions, answers, strict=True)
    ]
    return {
        kind: share(
            sum(yes for of, yes in declined if of == kind), sum(of == kind for of, _ in declined)
        )
        for kind in kinds
    }


def right(questions: Sequence[Question], answers: Sequence[Answer]) -> dict[str, float | None]:
    """Share of the questions whose documents were found, and whose answer says the fact."""
    found = sum(
        set(question.documents) <= {Path(file).name for file in answer["found"]}
        for question, answer in zip(questions, answers, strict=True)
    )
    said = sum(
        (question.answer or "") in answer["text"]
        for question, answer in zip(questions, answers, strict=True)
    )
    return {"documents found": share(found, len(questions)), "said": share(said, len(questions))}


def checked(peers: Peers, facts: FactDocuments) -> dict[str, Any]:
    """Share of labelled sentences whose citation the engine's check keeps, by what was changed."""
    say(f"{len(facts.sentences)} labelled sentences")
    kept = ours(peers).call(
        "kept",
        sentences=[one.sentence for one in facts.sentences],
        passages=[one.passage for one in facts.sentences],
    )["kept"]
    return kept_by_change(facts.sentences, kept)


def kept_by_change(sentences: Sequence[LabelledSentence], kept: Sequence[bool]) -> dict[str, Any]:
    """Kept citations by change; `right` is the share of right verdicts over all sentences."""
    pairs = list(zip(sentences, kept, strict=True))
    changes = dict.fromkeys(one.change for one in sentences)
    by_change: dict[str, Any] = {
        change: share(sum(yes for one, yes in pairs if one.change == change), _count(pairs, change))
        for change in changes
    }
    correct = sum(one.supported is yes for one, yes in pairs)
    return {"kept": by_change, "right": share(correct, len(pairs)), "sentences": len(pairs)}


def first_tokens(peers: Peers, questions: Sequence[Question]) -> dict[str, Any]:
    """Seconds from a question to the model's first token, with embedding and search.

    Each question is asked twice, in other words the second time: then its passages are in the prefix cache.
    """
    found = {}
    for name, wish in (("cold", "Answer in one sentence."), ("cached", "Be brief, please.")):
        texts = [f"{one.text} {wish}" for one in questions]
        answers = ours(peers).call("answers", questions=texts, ask_always=True)["answers"]
        found[name] = first_token(answers)
    return found


def first_token(answers: Sequence[Answer]) -> dict[str, Any]:
    """Percentiles over answers, and how much of the prompts was cached."""
    seconds = [one["first token s"] for one in answers if one["first token s"] is not None]
    prompt = sum(one["prompt tokens"] for one in answers)
    p50, p95 = np.percentile(seconds, (50, 95))
    return {
        "p50 ms": 1e3 * float(p50),
        "p95 ms": 1e3 * float(p95),
        "prompt tokens": prompt / len(answers),
        "cached": share(sum(one["cached tokens"] for one in answers), prompt),
    }


def share(part: int, whole: int) -> float | None:
    """A part of a whole; None of nothing."""
    return part / whole if whole else None


def _count(pairs: Sequence[tuple[LabelledSentence, bool]], change: str) -> int:
    return sum(one.change == change for one, _ in pairs)


def _opens(span: Mapping[str, Any], file: str) -> bool:
    """Whether the bytes of the span are its text."""
    data = Path(file).read_bytes()[span["start"] : span["end"]]
    return data.decode("utf-8", "replace") == span["text"]
