"""Answers from a collection: what is cited, what is supported, and what is said not to be there.

    python benchmarks/retrieval_answers.py --docs SOURCES --work DIR [--parts PART,…] [--json FILE]

SOURCES is `html/_sources` of Debian's package python3.11-doc. The collection is made in DIR and kept, so
that a second run begins at once. The headings of the FAQ, which are questions, are taken out of the
documents: they are asked. Parts:

* `ranking`: the right passage for a question of the FAQ, and the right document for the other questions: by
  words, by meaning, fused, and with the parts of the search changed.
* `rerank`: the same questions, with what was found in other orders: by MaxSim over token vectors and by
  likelihood.
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

from app.runtime.opening import open_client, wait_loaded
from app.settings.sources import load_settings
from benchmarks.machine import write_result
from benchmarks.retrieval_reranking import Asked, measure_reranking
from engine.embedding.embedder import Embedder, installed_encoder
from engine.retrieval.answering.answerer import Answerer, AnswerOptions
from engine.retrieval.answering.evidence import (
    MIN_EVIDENCE,
    best_evidence,
    evidence,
    unknown_names,
)
from engine.retrieval.answering.follow_up import standalone_query
from engine.retrieval.answering.numbered_passage import number_passages
from engine.retrieval.answering.sentences import sentences
from engine.retrieval.answering.support import SupportJudge
from engine.retrieval.answering.terms import content_terms
from engine.retrieval.api.passage import Mode, Passage
from engine.retrieval.library.collection import Collection
from engine.retrieval.library.library import Library
from engine.retrieval.search import hybrid

DATA = Path(__file__).parent / "data"
FOLDERS = ("faq", "tutorial", "howto", "library")
PARTS = ("ranking", "rerank", "support", "evidence", "follow_ups", "answers")
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
            "ranking": measure_ranking,
            "rerank": measure_rerank,
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
        write_result(arguments.json, results)


def int8_embedder() -> Embedder:
    """The embedding model with int8 weights, which is several times as fast as the default."""
    models = load_settings({}).models
    return Embedder(lambda: installed_encoder(models), precision="int8")


@contextmanager
def collection_of(docs: Path, work: Path, questions: dict[str, Any]) -> Iterator[Collection]:
    """The collection, made on the first run."""
    texts = work / "documents"
    if not texts.exists():
        faq = copy_documents(docs, texts, questions)
        questions_of_faq = work / "faq.json"
        questions_of_faq.write_text(json.dumps(faq))
    with (
        closing(int8_embedder()) as encoder,
        Library(work / "library", encoder) as library,
    ):
        if "docs" not in [one.name for one in library.collections()]:
            library.create("docs")
        collection = library.open("docs")
        began = time.monotonic()
        report = collection.add([texts])
        print(f"{report.chunks} chunks in {time.monotonic() - began:.0f} s", file=sys.stderr)
        yield collection


def copy_documents(docs: Path, texts: Path, questions: dict[str, Any]) -> list[dict[str, Any]]:
    """The FAQ without its questions, and the documents that the other questions are about; the questions."""
    faq: list[dict[str, Any]] = []
    parts = ("answerable", "follow_ups", "changed_subjects")
    asked = {one["file"] for part in parts for one in questions[part]}
    for folder in FOLDERS:
        (texts / folder).mkdir(parents=True)
        for path in sorted((docs / folder).glob("*.txt")):
            name = path.name.removesuffix(".rst.txt")
            if folder != "faq" and f"{folder}/{name}" not in asked:
                continue
            target = texts / folder / f"{name}.rst"
            text = path.read_text()
            if folder == "faq":
                text, answers = without_questions(text)
                faq += [{"file": str(target.resolve()), **one} for one in answers]
            target.write_text(text)
    return faq


def without_questions(text: str) -> tuple[str, list[dict[str, Any]]]:
    """The text with its questions replaced, and each question with the bytes of its answer."""
    heads = list(_HEADING.finditer(text))
    ends = [one.start() for one in heads[1:]] + [len(text)]
    written, answers = text[: heads[0].start()] if heads else text, []
    for head, end in zip(heads, ends, strict=True):
        start = len(written.encode())
        is_question = head[1].rstrip().endswith("?")
        written += head[0].replace(head[1], "Question") if is_question else head[0]
        written += text[head.end() : end]
        if is_question:
            span = {"start": start, "end": len(written.encode())}
            answers.append({"question": head[1].strip(), **span})
    return written, answers


def measure_ranking(
    collection: Collection, questions: dict[str, Any], work: Path
) -> dict[str, Any]:
    """hit@1, hit@5 and nDCG@10 of two kinds of questions."""
    kinds = _kinds(questions, work)
    results = {}
    ways: list[tuple[str, Mode, int, float]] = [
        ("lexical", "lexical", 20, 1.0), ("dense", "dense", 20, 1.0), ("fusion of 64", "hybrid", 64, 1.0),
        ("fusion of 20", "hybrid", 20, 1.0), ("fusion of 100", "hybrid", 100, 1.0),
        ("fusion of 20, MMR 0.95", "hybrid", 20, 0.95),
        ("fusion of 20, MMR 0.5", "hybrid", 20, 0.5),
    ]  # fmt: skip
    for name, mode, candidates, weight in ways:
        hybrid.CANDIDATES, hybrid.RELEVANCE_WEIGHT = candidates, weight
        results[name] = {
            kind: _ranking(
                [
                    [fits(one) for one in collection.search(query, k=10, mode=mode)]
                    for query, fits in asked
                ]
            )
            for kind, asked in kinds.items()
        }
    hybrid.CANDIDATES, hybrid.RELEVANCE_WEIGHT = 100, 0.95
    results["the first 8 by their best sentence"] = {
        kind: _ranking(
            [[fits(one) for one in _by_sentence(collection, query)] for query, fits in asked]
        )
        for kind, asked in kinds.items()
    }
    return results


def measure_rerank(collection: Collection, questions: dict[str, Any], work: Path) -> dict[str, Any]:
    """The same figures for what was found, in other orders."""
    return measure_reranking(collection, _kinds(questions, work), _ranking)


def _kinds(questions: dict[str, Any], work: Path) -> dict[str, list[Asked]]:
    faq = json.loads((work / "faq.json").read_text())
    return {
        "FAQ": [(one["question"], _answer_of(one)) for one in faq],
        "questions": [(one["question"], _document_of(one)) for one in questions["answerable"]],
    }


def _answer_of(question: dict[str, Any]) -> Callable[[Passage], bool]:
    def fits(passage: Passage) -> bool:
        overlap = min(passage.end, question["end"]) - max(passage.start, question["start"])
        return passage.file == question["file"] and 2 * overlap > passage.end - passage.start

    return fits


def _document_of(question: dict[str, Any]) -> Callable[[Passage], bool]:
    return lambda passage: passage.file.endswith(f"/{question['file']}.rst")


def _by_sentence(collection: Collection, query: str) -> list[Passage]:
    found = collection.search(query, k=8)
    closest = SupportJudge(number_passages(found), collection.embed).closest(query)
    order = [support.n - 1 for support in closest]
    return [found[at] for at in order + sorted(set(range(len(found))) - set(order))]


def _ranking(rows: list[list[bool]]) -> dict[str, float]:
    gain = [next((1 / np.log2(at + 2) for at, fits in enumerate(row) if fits), 0.0) for row in rows]
    return {
        "hit@1": round(float(np.mean([row[:1] == [True] for row in rows])), 3),
        "hit@5": round(float(np.mean([any(row[:5]) for row in rows])), 3),
        "nDCG@10": round(float(np.mean(gain)), 3),
    }


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
        "FAQ": [one["question"] for one in json.loads((work / "faq.json").read_text())],
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
                kind: round(float((values < threshold).mean()), 3) for kind, values in found.items()
            }
            for threshold in sorted({0.35, 0.40, MIN_EVIDENCE, 0.50, round(best, 2)})
        },
        "refused as shipped": {
            kind: round(sum(_is_refused(collection, one) for one in asked) / len(asked), 3)
            for kind, asked in kinds.items()
        },
        "chosen on one half": round(best, 2),
        "other half": {
            "answered with an answer": round(float((yes[1::2] >= best).mean()), 3),
            "refused without one": round(float((no[1::2] < best).mean()), 3),
        },
    }


def _is_refused(collection: Collection, question: str) -> bool:
    """Whether the model is not asked: too little evidence, or a name that no document has."""
    found = collection.search(question, k=3)
    unknown = unknown_names(question, found, collection.mentions)
    return bool(unknown) or best_evidence(question, found, collection.embed) < MIN_EVIDENCE


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
        for k, rerank in ((3, False), (1, False), (1, True), (3, True)):
            options = AnswerOptions(k=k, rerank=rerank, min_evidence=-1.0)
            name = f"answerable, k={k}" + (", reranked by likelihood" if rerank else "")
            results[name] = _answered(answerer, collection, questions["answerable"], options)
            print(name, results[name], file=sys.stderr)
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
    outcomes, right, first = Counter[str](), Counter[str](), list[float]()
    quoted = missing = found = 0
    for one in asked:
        answer = answerer.ask(collection, one["question"], options=options)
        outcomes[answer.outcome] += 1
        model = " ".join(sentence.text for sentence in answer.sentences)
        right[answer.outcome] += _has(model, one["answers"])
        quoted += _has(" ".join(q.text for c in answer.citations for q in c.quotes), one["answers"])
        found += answer.passages[0].file.endswith(f"/{one.get('file')}.rst")
        known = {source.n for source in answer.sources}
        missing += sum(int(n) not in known for n in re.findall(r"\[(\d+)\]", answer.text))
        if answer.first_token_s is not None:
            first.append(answer.first_token_s)
    return {
        "questions": len(asked),
        "outcomes": dict(outcomes),
        "first passage of the right document": found,
        "the model's text has the answer, by outcome": dict(right),
        "a cited passage's quote has the answer": quoted,
        "citations that do not exist": missing,
        "median seconds to the first token": round(float(np.median(first)), 3) if first else None,
    }


def _has(text: str, answers: Sequence[str]) -> bool:
    return any(one.casefold() in text.casefold() for one in answers)


if __name__ == "__main__":
    main()
