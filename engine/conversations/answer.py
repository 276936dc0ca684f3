"""`Answer`: an answer in generation, with its output so far and the time of the last save."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from engine.api.generation_defaults import SamplingChoice
from engine.api.grammar import Grammar
from engine.api.request import FinishReason, SamplingParams, Timings, TokenBatch, TopLogprob
from engine.api.tools import ToolCall, ToolRound
from engine.clients.engine_client import EngineClient
from engine.conversations.branch_sampling import stored
from engine.conversations.call_reader import CallReader
from engine.conversations.chat_tools import ToolUse
from engine.conversations.passage_source import CitationCheck, FoundPassages
from engine.conversations.reasoning_reader import ReasoningReader
from engine.conversations.text_guard import NO_CHECK, AnswerCheck
from engine.conversations.tree import Node, NodeDelta, NodeKind, NodeStatus, NodeView, view_of
from engine.grammar.call_plan import NO_WORDS
from engine.text.answer_parser import AnswerParser
from engine.text.repetition import RepetitionDetector

REPETITION = "repetition"
"""`Node.finish` of an answer that was stopped because it repeated itself."""

CONTENT_FILTER = "content_filter"
"""`Node.finish` of an answer that its `AnswerCheck` ended."""

CONTEXT_FULL = "context_full"
"""`Node.finish` of an answer that ended because the model's context has no room for more."""

FLUSH_S = 0.5
"""Minimum seconds between two saves of a streaming answer; a finished one is saved at once."""

_STATUS = {
    FinishReason.STOP: NodeStatus.DONE,
    FinishReason.LENGTH: NodeStatus.DONE,
    FinishReason.CONTENT_FILTER: NodeStatus.STOPPED,
    FinishReason.ABORT: NodeStatus.STOPPED,
    FinishReason.ERROR: NodeStatus.ERROR,
}


@dataclass(frozen=True, slots=True)
class Beginning:
    """The tokens of another answer with which an answer begins: a fork at a token.

    Attributes:
        forked_from: id of the other answer's node.
        token_ids: at least one.
        text: the complete characters of the tokens.
        logprobs: one per token, NaN where unknown.
        topk: alternatives per token, or empty.
    """

    forked_from: str
    token_ids: tuple[int, ...]
    text: str
    logprobs: tuple[float, ...]
    topk: tuple[tuple[TopLogprob, ...], ...] = ()


class Answer:
    """Collects the token batches of one request into its node.

    Attributes:
        asked: the nodes before the answer, root first.
        prompt: the nodes that its prompt is made from.
        request_id: None until the request was submitted (the engine may still be loading).
        wanted_model: the name of one of several models that answers; None for the only or the primary one.
        client: the engine that has the request, once it was submitted.
        prompt_ids: the prompt, its beginning of the answer included; empty until it was submitted.
        sampling: the sampling parameters, of which some may be left to the model.
        beginning: the tokens that the answer begins with, or None.
        limit: most tokens of this answer, whatever `sampling` says; None for no other limit.
        grammar: the language of the answer, or None.
        anyway: whether its message is answered also if its passages do not seem to answer it.
        faithful: whether it is the first answer to its passages, which is generated greedily unless the user
            has set sampling parameters; further ones would be the same.
        finding: the search for the passages of its message, until its result was taken; otherwise None.
        tools: what the model may call; None without tools.
        acting: of the node of calls: their results, until they were taken; otherwise None.
        stopped_for_repetition: whether the request was cancelled because the answer repeats itself.
        stopped_by_check: whether the request was cancelled because the check ended the answer.
        stopped_by_citations: whether it was cancelled because nothing more of the answer would be shown.
    """

    def __init__(
        self,
        node: Node,
        sampling: SamplingChoice,
        now: float,
        *,
        asked: Sequence[Node] = (),
        beginning: Beginning | None = None,
        begin_check: Callable[[], AnswerCheck] = lambda: NO_CHECK,
    ) -> None:
        self.asked = self.prompt = tuple(asked)
        self.request_id: str | None = None
        self.wanted_model: str | None = None
        self.client: EngineClient | None = None
        self.prompt_ids: tuple[int, ...] = ()
        self.sampling = sampling
        self.beginning = beginning
        self.limit: int | None = None
        self.grammar: Grammar | None = None
        self.anyway = False
        self.faithful = False
        self.finding: Future[FoundPassages] | None = None
        self.tools: ToolUse | None = None
        self.acting: Future[ToolRound] | None = None
        self._calls: CallReader | None = None
        self._cached_before: int | None = None
        self._decided_us = 0
        self._reasoning: ReasoningReader | None = None
        self._node = node
        self._text: list[str] = []
        self._ids: list[int] = []
        self._logprobs: list[float] = []
        self._topk: list[tuple[TopLogprob, ...]] = []
        self._drafted: list[bool] = []
        self._saved_at = now
        self._unsaved = False
        self._detector = RepetitionDetector()
        self._max_tokens: int | None = None
        self.stopped_for_repetition = False
        self.stopped_by_check = False
        self.stopped_by_citations = False
        self._begin_check = begin_check
        self._check = begin_check()
        self._reasoning_check = begin_check()
        self._shown_reasoning: list[str] = []
        self._citations: CitationCheck | None = None
        # Whether the text that the check of citations returns is shown at once.
        self._streams_checked = True
        self._ending: tuple[NodeStatus, str | None] | None = None  # until the citations are checked
        self._shown: list[str] | None = None  # until a text was fed to the checks
        self._was_seen = False  # whether somebody was shown what it begins with

    def refer(self, *, prompt: Sequence[Node] | None, forked_from: str | None) -> None:
        """Set the prompt's nodes if they are not those before the answer, and a node to refer to."""
        if prompt is not None:
            self.prompt = tuple(prompt)
        if forked_from is not None:
            self._node = replace(self._node, forked_from=forked_from)

    def answers_from(
        self, message: Node, grammar: Grammar | None, citations: CitationCheck | None
    ) -> None:
        """Take the message with its passages in place of the one without them.

        Args:
            message: with its passages.
            grammar: the language of the answer.
            citations: checks the answer while it arrives; None if there is nothing to cite.
        """
        self.asked = _with(self.asked, message)
        self.prompt = _with(self.prompt, message)
        self.grammar = grammar
        self._citations = citations
        self._node = replace(self._node, n_passages=message.n_passages)

    def reads(self, n_prompt: int) -> NodeDelta:
        """Take the length of its prompt, which is read before it is submitted; the change."""
        self._node = replace(self._node, n_prompt=n_prompt)
        return self._delta("")

    def decided(self, *, cached_tokens: int, seconds: float) -> None:
        """Take what the rows cost that decided whether it calls a tool: they have read its prompt.

        Args:
            cached_tokens: how many tokens of the prompt were cached before them.
            seconds: that they took.
        """
        self._cached_before = cached_tokens
        self._decided_us = round(seconds * 1e6)

    def read_calls(self, parser: AnswerParser, begun: Beginning | None = None) -> None:
        """Show the answer without its calls of tools, which `parser` finds; before its first output.

        Args:
            parser: has read nothing yet.
            begun: the beginning of a call, with which the answer begins.
        """
        self._calls = CallReader(parser)
        if begun is not None:
            self.beginning = begun
        self._show_anew()

    def read_reasoning(self, reader: ReasoningReader) -> None:
        """Show the answer without its reasoning; before its first output.

        Args:
            reader: has read nothing yet.
        """
        self._reasoning = reader
        self._show_anew()

    def _show_anew(self) -> None:
        """Let its beginning be read by what divides the answer now, although it was shown while it waited."""
        if self._shown is None:
            return
        self._shown, self._shown_reasoning = None, []
        self._check, self._reasoning_check = self._begin_check(), self._begin_check()

    @property
    def reasons(self) -> bool:
        """Whether it reasons now."""
        return self._reasoning is not None and not self.finished and self._reasoning.reasons

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of tools in it."""
        return [] if self._calls is None else self._calls.calls

    def take_results(self, text: str, calls: str) -> NodeDelta:
        """Finish the node of calls with their results and the stored form of the calls."""
        self.acting = None
        self._text.append(text)
        self._unsaved = True
        self._node = replace(self._node, calls=calls)
        return self._end(NodeStatus.DONE, FinishReason.STOP.value, text)

    @property
    def repeats(self) -> bool:
        """Whether the answer repeats itself without end."""
        return self._detector.found

    @property
    def blocked(self) -> bool:
        """Whether the check ended the answer."""
        return self._check.blocked or self._reasoning_check.blocked

    @property
    def leaves_passages(self) -> bool:
        """Whether the check of citations shows nothing more of it."""
        return self._citations is not None and self._citations.ended

    @property
    def awaits_citations(self) -> bool:
        """Whether everything was generated, and citations are still being checked."""
        return self._ending is not None

    @property
    def node_id(self) -> str:
        """The id of the node."""
        return self._node.id

    @property
    def is_summary(self) -> bool:
        """Whether it is a summary of other messages."""
        return self._node.kind is NodeKind.SUMMARY

    @property
    def finished(self) -> bool:
        """Whether the answer finished, for whatever reason."""
        return self._node.status is not NodeStatus.STREAMING

    @property
    def generated(self) -> tuple[int, ...]:
        """The token ids that were generated so far."""
        return tuple(self._ids)

    @property
    def n_cached(self) -> int | None:
        """Number of prompt tokens that were found in the prefix cache; None until reported."""
        return self._node.n_cached

    @property
    def n_gen(self) -> int:
        """Number of tokens generated so far."""
        return len(self._ids)

    @property
    def n_prompt(self) -> int:
        """Number of prompt tokens; 0 until submitted."""
        return self._node.n_prompt or 0

    def submitted(
        self,
        request_id: str,
        client: EngineClient,
        *,
        n_prompt: int,
        tokenizer: str,
        model: str | None,
        sampling: SamplingParams,
    ) -> None:
        """Record the submission of the request to `client`, with the sampling parameters that are used."""
        self.request_id, self.client = request_id, client
        self._max_tokens = sampling.max_tokens
        self._node = replace(
            self._node,
            n_prompt=n_prompt,
            tokenizer=tokenizer,
            model=model,
            sampling=stored(sampling, self.sampling.own),
        )
        if self._citations is not None and self._shown is not None:
            self._cite_beginning()

    def add(self, batch: TokenBatch) -> NodeDelta:
        """Add a batch; returns the change."""
        self._begin_showing()
        self._text.append(batch.text)
        self._ids += batch.token_ids
        self._logprobs += batch.logprobs
        self._topk += batch.top_logprobs
        self._drafted += batch.drafted
        self._unsaved = True
        status, finish = NodeStatus.STREAMING, None
        if batch.finish_reason is not None:
            status, finish = _STATUS[batch.finish_reason], batch.finish_reason.value
        if self.stopped_for_repetition and status is NodeStatus.STOPPED:
            finish = REPETITION
        if self.stopped_by_citations and status is NodeStatus.STOPPED:
            status, finish = NodeStatus.DONE, FinishReason.STOP.value
        if batch.finish_reason is FinishReason.LENGTH and self._has_room():
            finish = CONTEXT_FULL
        if status is NodeStatus.STREAMING:
            self._detector.feed(batch.token_ids)
        cached, ttft = batch.cached_tokens, _microseconds(batch.timings.ttft)
        self._node = replace(
            self._node,
            error=batch.error,
            seed=batch.seed,
            n_cached=cached if self._cached_before is None else min(cached, self._cached_before),
            ttft_us=None if ttft is None else ttft + self._decided_us,
            decode_us=_microseconds(_decode_seconds(batch.timings)),
        )
        visible = written = self._after_reasoning(
            batch, finished=status is not NodeStatus.STREAMING
        )
        if self._citations is not None:
            self._citations.feed(written)
            if self._streams_checked:
                visible = self._citations.take()
        if status is NodeStatus.STREAMING:
            return self._delta(self._show(visible))
        is_empty = not "".join(self._text).strip()
        if self._citations is None or status is NodeStatus.ERROR or is_empty:
            return self._end(status, finish, visible)
        self._citations.finish()
        self._ending = status, finish
        return self._delta(self._show(visible))

    def _after_reasoning(self, batch: TokenBatch, *, finished: bool) -> str:
        """The text of a batch that is no reasoning."""
        reader = self._reasoning
        if reader is None:
            return batch.text
        before = reader.count
        text = self._read_reasoning(reader, batch.text, batch.token_ids, finished=finished)
        if reader.count > before:
            self._node = replace(
                self._node, reasoning_us=_microseconds(_decode_seconds(batch.timings))
            )
        return text

    def _read_reasoning(
        self, reader: ReasoningReader, text: str, token_ids: Sequence[int], *, finished: bool
    ) -> str:
        """The text of a piece that is no reasoning; what can be shown of the reasoning is kept."""
        known = len(reader.reasoning)
        answered = reader.feed(text, token_ids, finished=finished)
        shown = self._reasoning_check.feed(reader.reasoning[known:])
        if finished:
            shown += self._reasoning_check.finish()
        self._shown_reasoning.append(shown)
        return answered

    def take_checked(self) -> NodeDelta | None:
        """The change that the check of citations has brought since the last call; None without one.

        The last one finishes an answer that awaited it.
        """
        if self._citations is None:
            return None
        done = self._ending is not None and self._citations.done
        text = self._citations.take() if self._streams_checked else ""
        if self._ending is None or not done:
            return self._delta(self._show(text)) if text else None
        checked = self._citations.result
        if checked is not None:
            self._node = replace(self._node, citations=checked.citations, checked_text=checked.text)
        self._unsaved = True
        status, finish = self._ending
        self._ending = None
        return self._end(status, finish, text)

    def wait_for_citations(self, seconds: float) -> None:
        """Finish an answer that awaits the check of its citations, if that takes no longer."""
        if self._citations is not None:
            self._citations.wait(seconds)
            self.take_checked()

    def _end(self, status: NodeStatus, finish: str | None, text: str) -> NodeDelta:
        """Finish with the last text that is shown."""
        shown = self._show(text, finished=True, cut=finish == FinishReason.LENGTH.value)
        reader = self._reasoning
        if reader is not None and self._node.checked_text is None and reader.text != self._written:
            self._node = replace(self._node, checked_text=reader.text)
        if self._calls is not None:
            text = self._calls.text.strip()
            in_words = self.tools is not None and self.tools.in_words
            if in_words and not text and status is NodeStatus.DONE:
                text = NO_WORDS
                self._node = replace(self._node, checked_text=text)
            elif self._calls.calls:
                self._node = replace(self._node, checked_text=text)
        if self.blocked and status in (NodeStatus.DONE, NodeStatus.STOPPED):
            status, finish = NodeStatus.STOPPED, CONTENT_FILTER
        self._node = replace(self._node, status=status, finish=finish)
        return self._delta(shown)

    def _delta(self, text: str) -> NodeDelta:
        node = self._node
        return NodeDelta(node.id, text, node.status, node.finish, node.error)

    def _show(self, text: str, *, finished: bool = False, cut: bool = False) -> str:
        """The text that can be shown after this one."""
        if self._calls is not None:
            self._begin_showing()
            text = self._calls.feed(text, finished=finished, cut=cut)
        shown = self._check.feed(text)
        if finished:
            shown += self._check.finish()
        if self._reasoning_check.blocked:  # the answer ended before its text
            shown = ""
        self._begin_showing().append(shown)
        return shown

    def _begin_showing(self) -> list[str]:
        """What was shown so far; the first call shows the beginning."""
        if self._shown is None:
            self._shown = []
            if self.beginning is not None:
                begun = self.beginning.text
                if self._reasoning is not None:
                    begun = self._read_reasoning(
                        self._reasoning, begun, self.beginning.token_ids, finished=False
                    )
                if self.request_id is not None and self._citations is not None:
                    begun = self._cite_beginning()
                if self._calls is not None:
                    begun = self._calls.feed(begun)
                self._shown.append(self._check.feed(begun))
        return self._shown

    def _cite_beginning(self) -> str:
        """Check the citations of the beginning; what is shown of it."""
        if self._citations is None or self.beginning is None:
            return ""
        begun = self.beginning.text if self._reasoning is None else self._reasoning.text
        self._citations.feed(begun)
        self._streams_checked = not self._was_seen
        return self._citations.take() if self._streams_checked else begun

    def _has_room(self) -> bool:
        """Whether the limit of the answer's tokens allows more."""
        return self._max_tokens is None or len(self._ids) < self._max_tokens

    def finish(
        self, status: NodeStatus, reason: FinishReason, error: str | None = None
    ) -> NodeDelta:
        """Finish without a final batch: the request was never submitted, or the session closes."""
        self._unsaved = True
        self._ending = None
        self._node = replace(self._node, error=error)
        text, reader = "", self._reasoning
        if reader is not None and not reader.finished:
            self._begin_showing()
            text = self._read_reasoning(reader, "", (), finished=True)
        return self._end(status, reason.value, text)

    def needs_save(self, now: float) -> bool:
        """Whether there are unsaved changes, and `FLUSH_S` passed or the answer finished."""
        if not self._unsaved:
            return False
        return self.finished or now - self._saved_at >= FLUSH_S

    def mark_saved(self, now: float) -> None:
        """Record that the current node was passed to the store."""
        self._saved_at = now
        self._unsaved = False

    def view(self) -> NodeView:
        """The node with the text and the reasoning that are shown so far."""
        text = "".join(self._begin_showing())
        self._was_seen = True
        view = view_of(self.node())
        if view.reasoning is None:
            return replace(view, text=text)
        return replace(view, text=text, reasoning="".join(self._shown_reasoning))

    def node(self) -> Node:
        """The node with the output so far."""
        begun = self.beginning or _NO_BEGINNING
        logprobs = tuple(self._logprobs)
        if not logprobs and self._ids:
            logprobs = (math.nan,) * len(self._ids) if begun.logprobs else ()
        topk, drafted = tuple(self._topk), tuple(self._drafted)
        written = self._written
        if begun.topk or (topk and begun.token_ids):
            topk = _padded(begun.topk, len(begun.token_ids)) + _padded(topk, len(self._ids))
        return replace(
            self._node,
            text=written,
            token_ids=(*begun.token_ids, *self._ids) or None,
            logprobs=begun.logprobs + logprobs,
            topk=topk,
            drafted=(False,) * len(begun.token_ids) + drafted if drafted else (),
            n_gen=len(self._ids),
            **self._reasoned(written),
        )

    @property
    def _written(self) -> str:
        """The output so far, after what the answer begins with."""
        begun = "" if self.beginning is None else self.beginning.text
        return begun + "".join(self._text)

    def _reasoned(self, written: str) -> dict[str, Any]:
        """The fields of the reasoning in the whole answer, and of an answer that is a message of its own."""
        reader = self._reasoning
        if reader is None:
            return {}
        answer_at = reader.answer_at(written, calls=bool(self.calls))
        if not (reader.count or reader.reasoning):
            return {"answer_at": answer_at} if answer_at else {}
        return {
            "reasoning": reader.reasoning,
            "answer_at": answer_at,
            "n_reasoning": reader.count,
        }


_NO_BEGINNING = Beginning("", (), "", ())


def _with(nodes: tuple[Node, ...], changed: Node) -> tuple[Node, ...]:
    return tuple(changed if node.id == changed.id else node for node in nodes)


def _padded(
    topk: tuple[tuple[TopLogprob, ...], ...], count: int
) -> tuple[tuple[TopLogprob, ...], ...]:
    """Alternatives of `count` tokens: those given, or none for each."""
    return topk or ((),) * count


def _decode_seconds(timings: Timings) -> float | None:
    first, last = timings.first_token, timings.last_token
    return None if first is None or last is None else last - first


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)
