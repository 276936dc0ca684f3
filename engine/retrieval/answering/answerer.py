"""`Answerer`: asks a model about a collection; the answer cites passages that were checked.

Search, enough evidence, prompt, constrained generation, verification while it streams (docs/retrieval.md).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.api.chat import ChatMessage
from engine.api.errors import EngineUnavailable, InvalidRequest
from engine.api.request import FinishReason, Request, SamplingParams, TokenBatch
from engine.api.snapshot import EngineState, ModelInfo
from engine.clients.batch_reader import BatchReader
from engine.clients.engine_client import EngineClient
from engine.retrieval.answering.answer import Answer
from engine.retrieval.answering.citation_grammar import citation_grammar
from engine.retrieval.answering.closest_quotes import closest_quotes
from engine.retrieval.answering.evidence import MIN_EVIDENCE, evidence
from engine.retrieval.answering.fitting import fit_sources, in_cached_order
from engine.retrieval.answering.follow_up import standalone_query
from engine.retrieval.answering.hops import MAX_ROUNDS, chain_parts
from engine.retrieval.answering.names import names_of
from engine.retrieval.answering.numbered_passage import NumberedPassage
from engine.retrieval.answering.prompt import answer_messages
from engine.retrieval.answering.reranking import RERANKED, rerank_by_likelihood
from engine.retrieval.answering.retrieving import retrieve
from engine.retrieval.answering.support import SupportJudge
from engine.retrieval.answering.verification import (
    VerifiedAnswer,
    VerifyingStream,
)
from engine.retrieval.api.passage import Passage
from engine.retrieval.store.filters import Where
from engine.text.chat_encoding import ChatEncoder

DEFAULT_K = 3
DEFAULT_MAX_TOKENS = 256
GREEDY = SamplingParams(temperature=0.0, max_tokens=DEFAULT_MAX_TOKENS)
MAX_PASSAGE_TOKENS = 2048
"""Prompt tokens spent on passages where the context has room for more."""

NOT_FOUND = "The documents do not answer this."

_LOADING_S = 0.05


class AskedCollection(Protocol):
    """What an answer needs of a collection; `Collection` is one."""

    def search(self, query: str, *, k: int = 8, where: Where | None = None) -> list[Passage]:
        """The passages that fit a query best, best first."""

    def section(self, passage: Passage) -> str:
        """The text of the section around a passage."""

    def mentions(self, words: str, *, where: Where | None = None) -> bool:
        """Whether a document has one of the words."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts, dimensions] vectors of unit length; long texts are cut."""


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How to answer.

    Attributes:
        k: number of passages to find.
        where: only passages of documents that this filter matches.
        sampling: sampling parameters; without `max_tokens` a quarter of the context is kept
            free for the answer, which may take all that is left. A grammar is replaced.
        min_evidence: evidence below which the model is not asked (`best_evidence`); nor is it if no document
            has a name of the question. -1 asks it always.
        sections: whether sections are read in place of passages where they fit; None leaves that to the
            size of the model, since small ones answer worse from longer texts.
        rerank: whether the model orders the passages before it reads the best `k` (`reranking`).
        rounds: searches one behind the other, from 1; more follow names that a passage introduces (`hops`).
    """

    k: int = DEFAULT_K
    where: Where | None = None
    sampling: SamplingParams = GREEDY
    min_evidence: float = MIN_EVIDENCE
    sections: bool | None = None
    rerank: bool = False
    rounds: int = MAX_ROUNDS


class Answerer:
    """Answers questions with one engine. For one thread at a time."""

    def __init__(self, client: EngineClient) -> None:
        """Register with `client` for wake-ups, which cannot be undone: keep the answerer."""
        self._client = client
        self._reader = BatchReader(client)

    def ask(
        self,
        collection: AskedCollection,
        question: str,
        *,
        history: Sequence[ChatMessage] = (),
        previous: Sequence[int] = (),
        options: AnswerOptions = AnswerOptions(),
        on_text: Callable[[str], None] = lambda text: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Answer a question from a collection. Blocks until the answer is complete.

        Args:
            collection: where to search.
            question: the question.
            history: earlier turns of the conversation, without their passages.
            previous: chunk ids of the last answer's sources, in order, whose cached prompt is reused.
            options: how to answer.
            on_text: called with each piece of the answer; the pieces joined are `Answer.text`.
            cancelled: asked between pieces; ends the answer with what there is.

        Raises:
            InvalidRequest: the question is empty, or the context has no room for a passage.
            EngineUnavailable: the engine has no model, failed or stopped.
        """
        began = time.monotonic()
        query = standalone_query(question, history)
        wanted = max(options.k, RERANKED) if options.rerank else options.k
        passages = collection.search(query, k=wanted, where=options.where)
        found = Answer(
            question, query, NOT_FOUND, "not_found",
            passages=tuple(passages), evidence=evidence(passages), search_s=time.monotonic() - began,
        )  # fmt: skip

        def best(found: Sequence[Passage]) -> Sequence[Passage]:
            return self._reranked(query, found)[: options.k] if options.rerank else found

        retrieved = retrieve(
            query,
            passages,
            lambda wanted: collection.search(wanted, k=options.k, where=options.where),
            lambda words: collection.mentions(words, where=options.where),
            collection.embed,
            asked=question,
            min_evidence=options.min_evidence,
            rounds=options.rounds,
            best=best,
        )
        hops = retrieved.hops
        if hops is None:
            text = (
                NOT_FOUND
                if retrieved.declined is None
                else f"{NOT_FOUND} {retrieved.declined.sentence}"
            )
            on_text(text)
            return replace(found, text=text, declined=retrieved.declined)
        model = self._model()
        passages = hops.best(options.k)
        found = replace(found, passages=tuple(passages), rounds=tuple(hops.rounds))
        sources, prompt = self._prompt(
            collection, question, in_cached_order(passages, previous), history, options, model
        )
        about = names_of(query).certain if model.is_small else frozenset()
        chain = chain_parts(hops.chain, sources)
        judge = SupportJudge(sources, collection.embed, chain, about=about)
        stream = VerifyingStream(judge, one_paragraph=model.is_small, supported_only=model.is_small)
        run = _Run(stream, on_text)
        request_id = self._client.submit(Request(prompt, _sampling(options, len(sources))))
        for batch in self._reader.read(request_id):
            if run.take(batch, time.monotonic() - began) or cancelled():
                self._client.cancel(request_id)
        answer = run.finish()
        complete = replace(
            found,
            text=answer.text, outcome="answered", citations=answer.citations, dropped=answer.dropped,
            sentences=answer.sentences, sources=tuple(sources), prompt_tokens=len(prompt),
            finish_reason=run.finish_reason, cached_tokens=run.cached_tokens,
            completion_tokens=run.completion_tokens, first_token_s=run.first_token_s,
        )  # fmt: skip
        return complete if answer.is_supported else _quoted(complete, judge, query, on_text)

    def _model(self) -> ModelInfo:
        """The model; waits while it is being loaded."""
        while True:
            snapshot = self._client.snapshot()
            if snapshot.state is not EngineState.LOADING and not snapshot.changes_model:
                break
            self._reader.wait(_LOADING_S)
        if snapshot.model is None or snapshot.state in (EngineState.FAILED, EngineState.STOPPED):
            raise EngineUnavailable(snapshot.last_error or "No model is loaded.")
        return snapshot.model

    def _encoder(self) -> ChatEncoder:
        client = self._client
        return ChatEncoder(client.tokenize, client.render_chat, client.control_tokens())

    def _reranked(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        self._model()
        return rerank_by_likelihood(self._client, self._reader, self._encoder(), query, passages)

    def _prompt(
        self,
        collection: AskedCollection,
        question: str,
        passages: Sequence[Passage],
        history: Sequence[ChatMessage],
        options: AnswerOptions,
        model: ModelInfo,
    ) -> tuple[list[NumberedPassage], tuple[int, ...]]:
        """What the model reads, and the prompt with it."""
        sections = not model.is_small if options.sections is None else options.sections
        encoder = self._encoder()

        def messages_of(sources: Sequence[NumberedPassage]) -> list[ChatMessage]:
            return answer_messages(question, sources, history=history, small=model.is_small)

        frame = len(encoder.encode_chat(messages_of([])))
        length = model.context_length
        room = length - frame - (options.sampling.max_tokens or length // 4)
        sources = fit_sources(
            passages,
            lambda text: len(self._client.tokenize(text)),
            budget=min(room, MAX_PASSAGE_TOKENS),
            section=collection.section if sections else None,
        )
        if not sources:
            raise InvalidRequest(
                f"The context of {model.name} ({model.context_length} tokens) has no room for a passage "
                "beside the question and the answer."
            )
        return sources, tuple(encoder.encode_chat(messages_of(sources)))


def ask(
    collection: AskedCollection,
    question: str,
    client: EngineClient,
    *,
    options: AnswerOptions = AnswerOptions(),
    on_text: Callable[[str], None] = lambda text: None,
) -> Answer:
    """`Answerer.ask` for a single question; keep an `Answerer` for several."""
    return Answerer(client).ask(collection, question, options=options, on_text=on_text)


class _Run:
    """One answer while it is generated."""

    def __init__(self, stream: VerifyingStream, on_text: Callable[[str], None]) -> None:
        self.finish_reason: FinishReason | None = None
        self.first_token_s: float | None = None
        self.cached_tokens = self.completion_tokens = 0
        self._stream, self._on_text = stream, on_text

    def take(self, batch: TokenBatch, elapsed_s: float) -> bool:
        """Show a batch; whether the rest is not worth generating.

        Raises:
            EngineUnavailable: the engine failed.
        """
        if batch.finish_reason is FinishReason.ERROR:
            raise EngineUnavailable(batch.error or "The engine failed.")
        if self.first_token_s is None and batch.token_ids:
            self.first_token_s = elapsed_s
            self.cached_tokens = batch.cached_tokens
        self.finish_reason = batch.finish_reason
        if self._stream.ended:
            return False
        self.completion_tokens += len(batch.token_ids)
        self._show(self._stream.feed(batch.text))
        return self._stream.ended

    def finish(self) -> VerifiedAnswer:
        """The checked answer; shows what was held back."""
        self._show(self._stream.finish())
        if self._stream.ended:
            self.finish_reason = FinishReason.STOP
        return self._stream.answer()

    def _show(self, text: str) -> None:
        if text:
            self._on_text(text)


def _sampling(options: AnswerOptions, sources: int) -> SamplingParams:
    return replace(options.sampling, grammar=citation_grammar(sources))


def _quoted(
    answer: Answer, judge: SupportJudge, query: str, on_text: Callable[[str], None]
) -> Answer:
    """The answer with the closest sentences of the passages behind it, which are quoted and cited."""
    closest = closest_quotes(judge, query, behind_answer=bool(answer.text))
    more = f"\n\n{closest.text}" if answer.text else closest.text
    on_text(more)
    return replace(
        answer,
        text=answer.text + more,
        outcome="unsupported",
        citations=closest.citations,
    )
