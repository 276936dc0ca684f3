"""`pravaha rag ask`: an answer from a collection, with citations that were checked."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.outcome import EXIT_ERROR, EXIT_INTERRUPTED, one_sentence_errors
from app.commands.rag import JsonOption, NameArgument, WhereOption, passage_fields
from app.commands.rag import rag_app as rag_app
from app.commands.setting_options import refuse_remote_contradictions, setting_options

if TYPE_CHECKING:
    from agents.guardrails.guardrails import OutputCheck
    from app.settings.settings import Settings
    from engine.retrieval.answering.answer import Answer
    from engine.retrieval.answering.answerer import AnswerOptions
    from engine.retrieval.answering.evidence import Declined
    from engine.retrieval.answering.hops import Round
    from engine.retrieval.answering.verification import Citation
    from engine.retrieval.api.passage import Passage

__all__ = ["answer_fields", "ask", "rag_app"]


@rag_app.command()
@setting_options("engine", "sampling", "documents", "guardrails", "remote")
def ask(
    context: typer.Context,
    name: NameArgument,
    question: Annotated[str, typer.Argument(help="The question; - reads standard input.")],
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, max=64, help="The largest number of passages; by default 3."),
    ] = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway",
            help="Ask the model also if no passage is close to the question, or no document has a name "
            "of it; the same as --min-evidence -1.",
        ),
    ] = False,
    rerank: Annotated[
        bool,
        typer.Option(
            "--rerank",
            help="Let the model order the first five passages: the right one is found more often, the answer "
            "begins later.",
        ),
    ] = False,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds",
            min=1,
            max=8,
            help="The largest number of searches one behind the other, which follow names that a passage "
            "introduces; by default 3, 1 searches once.",
        ),
    ] = None,
    where: WhereOption = None,
    as_json: JsonOption = False,
    *,
    flags: dict[str, Any],
) -> None:
    """Answer a question from a collection, with citations.

    Each citation is checked: one whose passage does not support the sentence is dropped, and its place is
    marked as unsupported. If the documents do not answer the question, the answer says so, and which rule
    decided it; --anyway has it answered all the same. Greedy unless --temperature is given.
    """
    given = {**(context.obj or {}), **flags}
    refuse_remote_contradictions(given)
    with one_sentence_errors():
        from app.settings.sources import load_settings
        from engine.api.errors import InvalidRequest

        settings = load_settings(given)
        text = (sys.stdin.read() if question == "-" else question).strip()
        if not text:
            raise InvalidRequest("The question is empty.")
        status = _answer(
            settings,
            name,
            text,
            _options(settings, k, rounds, where or (), rerank=rerank, anyway=anyway),
            as_json=as_json,
        )
    raise typer.Exit(status)


def _options(
    settings: "Settings",
    k: int | None,
    rounds: int | None,
    conditions: Sequence[str],
    *,
    rerank: bool,
    anyway: bool,
) -> "AnswerOptions":
    from dataclasses import replace

    from app.slash.document_attributes import read_conditions
    from engine.api.generation_defaults import GenerationDefaults
    from engine.retrieval.answering.answerer import DEFAULT_MAX_TOKENS, AnswerOptions

    sampling = settings.sampling().for_model(GenerationDefaults())
    if not settings.is_set("temperature"):
        sampling = replace(sampling, temperature=0.0)
    if not settings.is_set("max_tokens"):
        sampling = replace(sampling, max_tokens=DEFAULT_MAX_TOKENS)
    where = read_conditions(conditions)
    least = -1.0 if anyway else settings.min_evidence
    options = AnswerOptions(sampling=sampling, rerank=rerank, where=where, min_evidence=least)
    if k is not None:
        options = replace(options, k=k)
    if rounds is not None:
        options = replace(options, rounds=rounds)
    return options


def _answer(
    settings: "Settings", name: str, question: str, options: "AnswerOptions", *, as_json: bool
) -> int:
    """Answer and print; the exit status."""
    from agents.guardrails.redaction import RedactionMap
    from agents.guardrails.words import refusal
    from app.commands.fetch_bar import fetch_bar
    from app.runtime.guardrails import open_guardrails
    from app.runtime.opening import embedder, open_client
    from engine.api.errors import InvalidRequest
    from engine.retrieval.answering.answerer import Answerer
    from engine.retrieval.library.library import Library

    guardrails, redactions = open_guardrails(settings), RedactionMap()
    checked = guardrails.check_input(question, redactions)
    if checked.blocked is not None:
        raise InvalidRequest(refusal(checked.blocked))
    screen = _Screen(guardrails.output_check(redactions), show=not as_json)
    with (
        closing(embedder(settings)) as encoder,
        Library(settings.retrieval, encoder) as library,
        fetch_bar() as progress,
    ):
        collection = library.open(name)  # an unknown name is reported before a model is loaded
        with open_client(settings, progress) as opened, _interrupts(screen.stop):
            opened.start()
            answer = Answerer(opened.client).ask(
                collection,
                checked.text,
                options=options,
                on_text=screen.write,
                cancelled=lambda: screen.stopped,
            )
    text = screen.finish()
    if as_json:
        print(json.dumps(answer_fields(answer, text), ensure_ascii=False, indent=2))
    else:
        _print_sources(answer)
    if screen.blocked:
        print("pravaha: the answer was ended by the guardrails.", file=sys.stderr)
        return EXIT_ERROR
    return EXIT_INTERRUPTED if screen.interrupted else 0


class _Screen:
    """The answer as it passes the guardrails, on standard output if it is shown."""

    def __init__(self, check: "OutputCheck", *, show: bool) -> None:
        from app.text.safe_text import SafeStream

        self.interrupted = self.blocked = False
        self._check, self._show = check, show
        # A terminal must not interpret what a document or a model wrote; a file gets every character.
        self._safe = SafeStream() if sys.stdout.isatty() else None
        self._pieces: list[str] = []

    @property
    def stopped(self) -> bool:
        return self.interrupted or self.blocked

    def stop(self) -> None:
        self.interrupted = True

    def write(self, text: str) -> None:
        self._put(self._check.feed(text))
        self.blocked |= self._check.blocked is not None

    def finish(self) -> str:
        """The whole answer."""
        self._put(self._check.finish())
        self.blocked |= self._check.blocked is not None
        if self._show:
            sys.stdout.write((self._safe.flush() if self._safe else "") + "\n")
            sys.stdout.flush()
        return "".join(self._pieces)

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        if self._show:
            sys.stdout.write(self._safe.feed(text) if self._safe else text)
            sys.stdout.flush()


@contextmanager
def _interrupts(stop: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl+C ends the answer and keeps its text; the second ends the command."""

    def on_interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def answer_fields(answer: "Answer", text: str) -> dict[str, object]:
    """An answer as JSON; `text` is the answer as the guardrails let it pass."""
    declined = answer.declined
    return {
        "answer": text,
        "outcome": answer.outcome,
        "citations": [_citation_fields(one) for one in answer.citations],
        "dropped": [
            {"n": one.n, "sentence": one.sentence, "exists": one.exists} for one in answer.dropped
        ],
        "sentences": [
            {"text": one.text, "supported": one.supported, "cites": list(one.cites)}
            for one in answer.sentences
        ],
        "passages": [passage_fields(one) for one in answer.passages],
        "question": answer.question,
        "query": answer.query,
        "rounds": [_round_fields(one) for one in answer.rounds],
        "declined": None if declined is None else _declined_fields(declined),
        "unknown_names": [] if declined is None else list(declined.unknown),
        "evidence": answer.evidence,
        "finish_reason": answer.finish_reason,
        "usage": {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        },
        "timings": {"search": answer.search_s, "first_token": answer.first_token_s},
    }


def _declined_fields(declined: "Declined") -> dict[str, object]:
    return {
        "rule": declined.rule,
        "evidence": declined.evidence,
        "least": declined.least,
        "sentence": declined.sentence,
    }


def _round_fields(one: "Round") -> dict[str, object]:
    chunks = [passage.chunk_id for passage in one.passages]
    return {"query": one.query, "bridge": one.bridge or None, "chunks": chunks}


def _citation_fields(citation: "Citation") -> dict[str, object]:
    source = citation.source
    return {
        "n": citation.n,
        "file": source.passage.file,
        "start": source.start,
        "end": source.end,
        "text": source.text,
        "spans_of": source.passage.spans_of,
        "line": source.line_at(0),
        "page": source.passage.page,
        "headings": list(source.passage.heading_path),
        "chunk": source.passage.chunk_id,
        "quotes": [
            {
                "text": one.text,
                "start": one.start,
                "end": one.end,
                "line": one.line,
                "sentence": one.sentence,
            }
            for one in citation.quotes
        ],
    }


def _print_sources(answer: "Answer") -> None:
    """The cited places, and what was found where nothing is cited."""
    from app.text.safe_text import safe_line

    if answer.citations:
        print()
    for citation in answer.citations:
        first = citation.quotes[0]
        print(safe_line(f"[{citation.n}] {_place(citation, first.line)}"))
        if answer.outcome == "answered":
            for quote in dict.fromkeys(safe_line(one.text) for one in citation.quotes):
                print(f"    “{quote}”")
    if len(answer.rounds) > 1:
        print()
    for one in answer.rounds[1:]:
        print(safe_line(f"Searched again for {one.bridge}: {one.query}"))
    if answer.outcome == "not_found" and answer.passages:
        print("\n--anyway has it answered all the same. The closest passages:")
        for passage in answer.passages:
            place = _at(passage, passage.line)
            print(safe_line(f"    {place} {' › '.join(passage.heading_path)}"))
    checked = [one for one in answer.sentences if one.supported is not None]
    unsupported = sum(not one.supported for one in checked)
    if answer.outcome == "answered" and unsupported:
        print(
            f"\nNo passage supports {unsupported} of {len(checked)} sentences: those without a number."
        )


def _place(citation: "Citation", line: int) -> str:
    passage = citation.source.passage
    return f"{_at(passage, line)}  {' › '.join(passage.heading_path)}".rstrip()


def _at(passage: "Passage", line: int) -> str:
    """The path as it opens from the current folder, with its page or line."""
    relative = os.path.relpath(passage.file)
    path = passage.file if relative.startswith("..") else relative
    if passage.page is not None:
        return f"{path} page {passage.page}"
    return f"{path}:{line}" if passage.spans_of == "file" else path
