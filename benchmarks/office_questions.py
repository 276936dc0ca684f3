"""Sixty questions over twenty-four office documents: which are answered right, and cited right?

    python benchmarks/office_documents.py DOCUMENTS      # in an environment with its four libraries
    python benchmarks/office_questions.py --documents DOCUMENTS --model FILE [--faces ask,chat] [--json FILE]

The documents and questions are invented (`office_documents.py`, `data/office_questions.yaml`). A question
counts if its outcome is an answer, the answer has the right value, and a citation that was checked is of the
right document. Faces: `ask` is `pravaha rag ask`; `chat` sends `@office QUESTION` in line mode, each in a new
conversation.
"""

import argparse
import io
import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from app.plain.repl import PlainChat
from app.runtime.opening import (
    embedder,
    open_client,
    open_session,
    open_sources,
    wait_loaded,
)
from app.runtime.stored_passages import load_citations, load_passages
from app.settings.settings import Settings
from app.settings.sources import load_settings
from benchmarks.machine import say, write_result
from engine.conversations.tree import NodeKind
from engine.retrieval.answering.answerer import Answerer
from engine.retrieval.answering.closest_quotes import NOT_SUPPORTED
from engine.retrieval.library.library import Library

QUESTIONS = Path(__file__).parent / "data" / "office_questions.yaml"
COLLECTION = "office"
_SPACE = re.compile(r"\s+|(?<=\d),(?=\d{3})")
_HYPHENS = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212"), "-")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the file that answers it, and the values one of which a right answer has."""

    file: str
    question: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """What was answered: the outcome, the text, and the names of the files that it cites."""

    outcome: str
    text: str
    cited: tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--faces", default="ask,chat")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    faces: dict[str, Callable[[Settings, Sequence[Question]], Iterator[Given]]] = {
        "ask": asked,
        "chat": chatted,
    }
    questions = read_questions()
    with TemporaryDirectory() as folder:
        settings = load_settings(
            {"data_dir": Path(folder), "model": arguments.model, "temperature": 0.0}
        )
        add_documents(settings, arguments.documents)
        results = {
            face: tell(face, questions, faces[face](settings, questions))
            for face in arguments.faces.split(",")
        }
    print(json.dumps({face: one["counts"] for face, one in results.items()}, indent=2))
    if arguments.json:
        write_result(arguments.json, results)


def read_questions() -> list[Question]:
    """All questions."""
    entries = yaml.safe_load(QUESTIONS.read_text())
    return [Question(one["file"], one["question"], tuple(one["answers"])) for one in entries]


def add_documents(settings: Settings, documents: Path) -> None:
    """Make the collection."""
    with closing(embedder(settings)) as encoder, Library(settings.retrieval, encoder) as library:
        library.create(COLLECTION)
        report = library.open(COLLECTION).add([documents])
        say(f"{report.chunks} passages of {len(list(documents.iterdir()))} documents")


def asked(settings: Settings, questions: Sequence[Question]) -> Iterator[Given]:
    """The answers of `pravaha rag ask`."""
    with (
        closing(embedder(settings)) as encoder,
        Library(settings.retrieval, encoder) as library,
        open_client(settings) as opened,
    ):
        opened.start()
        wait_loaded(opened.client)
        answerer, collection = Answerer(opened.client), library.open(COLLECTION)
        for one in questions:
            answer = answerer.ask(collection, one.question)
            cited = tuple(Path(each.source.passage.file).name for each in answer.citations)
            yield Given(answer.outcome, answer.text, cited)


def chatted(settings: Settings, questions: Sequence[Question]) -> Iterator[Given]:
    """The answers of the line-mode chat, each in a new conversation."""
    with (
        open_client(settings) as opened,
        open_sources(settings, opened.engine) as sources,
        open_session(settings, opened.client, resume=False, passages=sources) as session,
    ):
        opened.start()
        wait_loaded(opened.client)
        given: list[Given] = []
        lines = iter(
            [line for one in questions for line in ("/new", f"@{COLLECTION} {one.question}")]
        )

        def read(prompt: str) -> str:
            path = session.path()
            if path and path[-1].kind is NodeKind.ASSISTANT:
                found = session.sources.passages_of(path[-1].id)
                passages = () if found is None else load_passages(found.passages)
                files = {one.n: one.file for one in passages}
                cited = [one for one in load_citations(path[-1].citations) if one.supported]
                names = tuple(Path(files[one.n]).name for one in cited if one.n in files)
                text, unsupported, _ = path[-1].text.partition(NOT_SUPPORTED)
                outcome = "unsupported" if unsupported else "answered" if cited else "not_found"
                given.append(Given(outcome, text, names))
            line = next(lines, None)
            if line is None:
                raise EOFError
            return line

        chat = PlainChat(
            session,
            opened.client,
            read=read,
            out=io.StringIO(),
            show_prompts=False,
            sources=sources,
        )
        chat.run()
        yield from given


def tell(face: str, questions: Sequence[Question], given: Iterator[Given]) -> dict[str, Any]:
    """Judge the answers of a face; the counts and each answer."""
    rows = []
    for question, answer in zip(questions, given, strict=True):
        verdict = judge(question, answer)
        rows.append(asdict(question) | asdict(answer) | {"verdict": verdict})
        if verdict != "right":
            text = " ".join(answer.text.split())[:160]
            say(f"{face} {verdict}: {question.question} → {answer.outcome}: {text} {answer.cited}")
    counts = Counter(row["verdict"] for row in rows)
    return {"counts": {"questions": len(rows), **counts}, "answers": rows}


def judge(question: Question, given: Given) -> str:
    """`right`, or what is wrong first: declined, unsupported, wrong value, wrong citation."""
    if given.outcome == "not_found":
        return "declined"
    if not any(bare(value) in bare(given.text) for value in question.answers):
        return "wrong value"
    if given.outcome != "answered":
        return "unsupported"
    return "right" if question.file in given.cited else "wrong citation"


def bare(text: str) -> str:
    """A text without what may be written in several ways."""
    plain = unicodedata.normalize("NFKC", text).translate(_HYPHENS)
    return _SPACE.sub("", plain).casefold().strip()


if __name__ == "__main__":
    main()
