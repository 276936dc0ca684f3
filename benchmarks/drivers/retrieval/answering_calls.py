"""What only Pravāha is asked: answers of a model from a collection, and the check of labelled sentences."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.api.config import EngineConfig
from engine.clients.in_process import InProcessClient
from engine.retrieval.answering.answer import Answer
from engine.retrieval.answering.answerer import Answerer, AnswerOptions
from engine.retrieval.answering.numbered_passage import NumberedPassage
from engine.retrieval.answering.verification import verify
from engine.retrieval.api.passage import Passage
from engine.retrieval.library.collection import Collection
from engine.runtime.engine import AsyncPravahaEngine


@dataclass(slots=True)
class AnsweringModel:
    """The engine with a loaded model."""

    engine: AsyncPravahaEngine
    answerer: Answerer

    @classmethod
    def loaded(cls, model: Path, threads: int) -> "AnsweringModel":
        """Load the model and wait for it."""
        engine = AsyncPravahaEngine(EngineConfig(model=model, name="demo", threads=threads))
        engine.start()
        engine.wait_ready(None)
        return cls(engine, Answerer(InProcessClient(engine)))

    def answers(
        self, collection: Collection, questions: Sequence[str], *, ask_always: bool
    ) -> list[dict[str, Any]]:
        """Answers as plain data.

        Args:
            ask_always: ask the model whatever the evidence is.
        """
        options = AnswerOptions(min_evidence=-1.0) if ask_always else AnswerOptions()
        return [
            _plain(self.answerer.ask(collection, question, options=options))
            for question in questions
        ]


def kept_citations(
    sentences: Sequence[str], passages: Sequence[str], embed: Callable[..., Any]
) -> list[bool]:
    """Whether the check lets each sentence cite its passage."""
    kept = []
    for sentence, passage in zip(sentences, passages, strict=True):
        answer = verify(f"{sentence} [1]", [_source(passage)], embed)
        kept.append(bool(answer.citations))
    return kept


def _source(text: str) -> NumberedPassage:
    size = len(text.encode())
    passage = Passage(
        chunk_id=1,
        document_id=1,
        file="passage.md",
        title=None,
        start=0,
        end=size,
        spans_of="file",
        text=text,
        tokens=len(text.split()),
        heading_path=(),
        section_start=0,
        section_end=size,
        page=None,
        line=1,
        rank=1,
        score=1.0,
        dense=1.0,
    )
    return NumberedPassage.of(1, passage)


def _plain(answer: Answer) -> dict[str, Any]:
    return {
        "text": answer.text,
        "outcome": answer.outcome,
        "evidence": answer.evidence,
        "sentences": [asdict(one) for one in answer.sentences],
        "sources": [
            {
                "n": one.n,
                "file": one.passage.file,
                "start": one.start,
                "end": one.end,
                "text": one.text,
            }
            for one in answer.sources
        ],
        "quotes": [
            {"n": one.n, **asdict(quote)} for one in answer.citations for quote in one.quotes
        ],
        "dropped": len(answer.dropped),
        "found": [one.file for one in answer.passages],
        "first token s": answer.first_token_s,
        "prompt tokens": answer.prompt_tokens,
        "cached tokens": answer.cached_tokens,
    }
