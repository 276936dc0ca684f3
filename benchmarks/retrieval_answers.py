"""Answers from a collection: what is cited, what is supported, and what is said not to be there.

    python benchmarks/retrieval_answers.py --docs SOURCES --work DIR [--parts PART,…] [--json FILE]

SOURCES is `html/_sources` of Debian's package python3.11-doc. The collection is made in DIR and kept, so that a
second run begins at once. The headings of the FAQ, which are questions, are taken out of the documents: they
are asked. Parts:

* `support`: does a passage support a sentence? 91 sentences that the demo model wrote, labelled by hand
  (`data/retrieval_support.jsonl`; passages from Python's documentation, PSF licence), and sentences of the
  documents: unchanged, cut to their main clause, negated, with another number, beside a neighbouring passage.
* `evidence`: the highest cosine of questions with and without an answer, and the errors of each threshold.
* `follow_ups`: the right document for a question that refers to the one before it.
* `answers`: the demo model: right answers, support, and what it says to questions without an answer.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from app.runtime.opening import embedder, open_client, wait_loaded
from app.settings.sources import load_settings
from engine.retrieval.answering.answerer import Answerer, AnswerOptions
from engine.retrieval.answering.evidence import MIN_EVIDENCE, evidence
from engine.retrieval.answering.follow_up import standalone_query
from engine.retrieval.answering.sentences import sentences
from engine.retrieval.answering.source import number_passages
from engine.retrieval.answering.support import SupportJudge
from engine.retrieval.answering.terms import content_terms
from engine.retrieval.api.passage import Passage
from engine.retrieval.library.collection import Collection
from engine.retrieval.library.library import Library

DATA = Path(__file__).parent / "data"
FOLDERS = ("faq", "tutorial", "howto", "library")
PARTS = ("support", "evidence", "follow_ups", "answers")
_HEADING = re.compile(r"^(.+)\n([=\-~^\"*#+])\2{2,}\n", re.MULTILINE)
_NEGATIONS = (
    (" is ", " is not "), (" are ", " are not "), (" can ", " cannot "), (" does not ", " does "),
    (" must ", " need not "), (" returns ", " does not return "),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    questions = yaml.safe_load((DATA / "retrieval_questions.yaml").read_text())
    with collection_of(arguments.docs, arguments.work, questions) as collection:
        measures: dict[str, Callable[[Collection, dict[str, Any], Path], dict[str, Any]]] = {
            "support": measure_support,
            "evidence": measure_evidence,
            "follow_ups": measure_follow_ups,
            "answers": measure_answers,
        }
        results = {
            part: measures[part](collection, questions, arguments.work)
            for part in arguments.parts.split(",")
        }
    print(json.dumps(results, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


@contextmanager
def collection_of(docs: Path, work: Path, questions: dict[str, Any]) -> Iterator[Collection]:
    """The collection, made on the first run."""
    texts = work / "documents"
    if not texts.exists():
        copy_documents(docs, texts, questions)
        (work / "faq.json").write_text(json.dumps(faq_questions(docs)))
    with (
        closing(embedder(load_settings({}))) as encoder,
        Library(work / "library", encoder) as library,
    ):
        if "docs" not in [one.name for one in library.collections()]:
            library.create("docs")
        collection = library.open("docs")
        began = time.monotonic()
        report = collection.add([texts])
        print(f"{report.chunks} chunks in {time.monotonic() - began:.0f} s", file=sys.stderr)
        yield collection


def copy_documents(docs: Path, texts: Path, questions: dict[str, Any]) -> None:
    """The documents with the FAQ's questions taken out; of the library what is asked about, and as many others."""
    parts = ("answerable", "follow_ups", "changed_subjects")
    asked = {one["file"] for part in parts for one in questions[part]}
    library = sorted(path.name for path in (docs / "library").glob("*.txt"))[::5]
    for folder in FOLDERS:
        (texts / folder).mkdir(parents=True)
        for path in sorted((docs / folder).glob("*.txt")):
            name = path.name.removesuffix(".rst.txt")
            if folder == "library" and f"library/{name}" not in asked and path.name not in library:
                continue
            text = path.read_text()
            if folder == "faq":
                text = _HEADING.sub(_anonymous, text)
            (texts / folder / f"{name}.rst").write_text(text)


def _anonymous(heading: "re.Match[str]") -> str:
    return heading[0].replace(heading[1], "Question") if heading[1].endswith("?") else heading[0]


def faq_questions(docs: Path) -> list[str]:
    found = []
    for path in sorted((docs / "faq").glob("*.txt")):
        found += [one[1].strip() for one in _HEADING.finditer(path.read_text())]
    return [one for one in found if one.endswith("?")]


def measure_support(
    collection: Collection, questions: dict[str, Any], work: Path
) -> dict[str, Any]:
    """Precision and recall of the judge, by kind of sentence."""
    rows = [
        ("written by the model", one["sentence"], one["passages"], one["supported"])
        for one in map(json.loads, (DATA / "retrieval_support.jsonl").read_text().splitlines())
    ]
    rows += list(changed_sentences(work / "documents"))
    judged = Counter[tuple[str, bool, bool]]()
    for kind, sentence, passages, supported in rows:
        sources = number_passages(_passage(text) for text in passages)
        found = bool(SupportJudge(sources, collection.embed).supports(sentence))
        judged[kind, supported, found] += 1
    return {
        "kinds": {
            f"{kind}, {'supported' if label else 'not supported'}": {
                "kept": judged[kind, label, True],
                "of": judged[kind, label, True] + judged[kind, label, False],
            }
            for kind, label in sorted({key[:2] for key in judged})
        },
        "all": _precision(judged),
        "written by the model": _precision(
            Counter({key: n for key, n in judged.items() if key[0] == "written by the model"})
        ),
    }


def _precision(judged: "Counter[tuple[str, bool, bool]]") -> dict[str, float]:
    right = sum(n for (_, label, kept), n in judged.items() if label and kept)
    kept = sum(n for (*_, kept), n in judged.items() if kept)
    positive = sum(n for (_, label, _), n in judged.items() if label)
    return {"precision": right / max(1, kept), "recall": right / max(1, positive)}


def changed_sentences(documents: Path) -> Iterator[tuple[str, str, list[str], bool]]:
    """Sentences of the documents with what was done to them, the passage, and whether it supports them."""
    chosen = random.Random(7)
    paragraphs = [
        text
        for path in sorted(documents.glob("*/*.rst"))
        for text in _long_paragraphs(path.read_text())
    ]
    for at in chosen.sample(range(3, len(paragraphs) - 3), 300):
        passage = paragraphs[at]
        sentence = " ".join(chosen.choice([s for s in sentences(passage) if _is_prose(s)]).split())
        kind = chosen.choice(("unchanged", "main clause", "negated", "other number", "neighbour"))
        if kind == "unchanged":
            yield kind, sentence, [passage], True
        elif kind == "main clause":
            clause = re.split(r", (?:and|but|which|so|or|if|when|where)\b|; | \(", sentence)[0]
            if clause != sentence and len(content_terms(clause)) >= 4:
                yield kind, clause + ".", [passage], True
        elif kind == "negated":
            for old, new in _NEGATIONS:
                if old in sentence and f"{old}not " not in sentence:
                    yield kind, sentence.replace(old, new, 1), [passage], False
                    break
        elif kind == "other number":
            number = re.search(r"(?<![\w.])\d+(?![\w.])", sentence)
            if number:
                other = str(2 * int(number[0]) + 3)
                changed = sentence[: number.start()] + other + sentence[number.end() :]
                yield kind, changed, [passage], False
        else:
            yield kind, sentence, [paragraphs[at + chosen.choice((-3, -2, 2, 3))]], False


def _long_paragraphs(text: str) -> list[str]:
    pieces = (piece.strip() for piece in re.split(r"\n\s*\n", text))
    return [one for one in pieces if len(one) > 120 and any(map(_is_prose, sentences(one)))]


def _is_prose(sentence: str) -> bool:
    plain = sentence[0].isupper() and sentence.endswith(".") and ">>>" not in sentence
    return plain and 50 < len(sentence) < 250 and len(content_terms(sentence)) >= 5


def _passage(text: str) -> Passage:
    return Passage(
        0, 0, "document", None, 0, len(text.encode()), "file", text, 0, (), 0, len(text.encode()), None, 1,
        rank=1, score=1.0,
    )  # fmt: skip


def measure_evidence(
    collection: Collection, questions: dict[str, Any], work: Path
) -> dict[str, Any]:
    """The share of each kind of question that thresholds refuse. Half of the questions choose one."""
    kinds = {
        "answerable": [one["question"] for one in questions["answerable"]],
        "FAQ": json.loads((work / "faq.json").read_text()),
        "other programs": questions["other_programs"],
        "other subjects": questions["other_subjects"],
    }
    found = {
        kind: np.array([evidence(collection.search(one, k=3)) for one in asked])
        for kind, asked in kinds.items()
    }
    yes = np.concatenate([found["answerable"], found["FAQ"]])
    no = np.concatenate([found["other programs"], found["other subjects"]])
    thresholds = np.arange(0.30, 0.601, 0.01)
    balanced = [(yes[::2] >= t).mean() + (no[::2] < t).mean() for t in thresholds]
    best = float(thresholds[int(np.argmax(balanced))])
    return {
        "refused": {
            f"{threshold:.2f}": {
                kind: round(float((values < threshold).mean()), 3)
                for kind, values in found.items()
            }
            for threshold in sorted({0.35, 0.40, MIN_EVIDENCE, 0.50, round(best, 2)})
        },
        "chosen on one half": round(best, 2),
        "other half": {
            "answered with an answer": round(float((yes[1::2] >= best).mean()), 3),
            "refused without one": round(float((no[1::2] < best).mean()), 3),
        },
    }


def measure_follow_ups(
    collection: Collection, questions: dict[str, Any], work: Path
) -> dict[str, Any]:
    """How often the first passage, and one of the first five, is of the right document."""

    def both(before: str, question: str) -> str:
        return f"{before} {question}"

    def by_rule(before: str, question: str) -> str:
        return standalone_query(question, [{"role": "user", "content": before}])

    ways: dict[str, Callable[[str, str], str]] = {
        "as asked": lambda before, question: question,
        "both questions": both,
        "by rule": by_rule,
    }
    return {
        part: {
            name: _hits(
                collection,
                [(query(one["before"], one["question"]), one["file"]) for one in questions[part]],
            )
            for name, query in ways.items()
        }
        for part in ("follow_ups", "changed_subjects")
    }


def _hits(collection: Collection, queries: Sequence[tuple[str, str]]) -> dict[str, Any]:
    first = five = 0
    for query, file in queries:
        right = [one.file.endswith(f"/{file}.rst") for one in collection.search(query, k=5)]
        first += right[:1] == [True]
        five += any(right)
    return {"hit@1": first, "hit@5": five, "of": len(queries)}


def measure_answers(
    collection: Collection, questions: dict[str, Any], work: Path
) -> dict[str, Any]:
    """The demo model on questions with and without an answer."""
    results: dict[str, Any] = {}
    with open_client(load_settings({})) as opened:
        opened.start()
        wait_loaded(opened.client)
        answerer = Answerer(opened.client)
        for k in (1, 2, 3, 5):
            results[f"answerable, k={k}"] = _answered(
                answerer, collection, questions["answerable"], AnswerOptions(k=k)
            )
        for part in ("other_programs", "other_subjects"):
            asked = [{"question": one, "answers": []} for one in questions[part]]
            results[part] = _answered(answerer, collection, asked, AnswerOptions())
    return results


def _answered(
    answerer: Answerer,
    collection: Collection,
    asked: Sequence[dict[str, Any]],
    options: AnswerOptions,
) -> dict[str, Any]:
    outcomes, right, quoted, missing, first = Counter[str](), Counter[str](), 0, 0, []
    for one in asked:
        answer = answerer.ask(collection, one["question"], options=options)
        outcomes[answer.outcome] += 1
        model = " ".join(sentence.text for sentence in answer.sentences)
        right[answer.outcome] += _has(model, one["answers"])
        quoted += _has(" ".join(q.text for c in answer.citations for q in c.quotes), one["answers"])
        known = {source.n for source in answer.sources}
        missing += sum(int(n) not in known for n in re.findall(r"\[(\d+)\]", answer.text))
        if answer.first_token_s is not None:
            first.append(answer.first_token_s)
    return {
        "questions": len(asked),
        "outcomes": dict(outcomes),
        "the model's text has the answer, by outcome": dict(right),
        "a cited passage's quote has the answer": quoted,
        "citations that do not exist": missing,
        "median seconds to the first token": round(float(np.median(first)), 3) if first else None,
    }


def _has(text: str, answers: Sequence[str]) -> bool:
    return any(one.casefold() in text.casefold() for one in answers)


if __name__ == "__main__":
    main()
