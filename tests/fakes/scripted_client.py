"""An `EngineClient` whose answers are scripted, for exact traces of agents' steps."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache

from llguidance import LLMatcher, LLTokenizer

from engine.api.grammar import Grammar
from engine.api.request import FinishReason, Request, Timings, TokenBatch
from engine.api.snapshot import BlockCounts, EngineSnapshot
from engine.grammar.source import library_text, parse_source
from tests.fakes.chat_toys import ToyClient

Scores = Callable[[Request, str], Mapping[str, float]]
"""Prompt text → log-probability by letter."""


class ScriptedClient(ToyClient):
    """Answers each request at once with the next text of a script, which must obey its grammar.

    Attributes:
        hold: while set, requests stay unanswered.
        cut: whether a text that its grammar does not accept was cut at the token limit.
    """

    def __init__(
        self,
        script: Iterable[str] = (),
        *,
        scores: Scores | None = None,
        block_size: int = 16,
        context_length: int = 65_536,
    ) -> None:
        super().__init__(context_length=context_length)
        self._script = list(script)
        self._scores = scores
        self._block_size = block_size
        self._callbacks: list[Callable[[], None]] = []
        self.hold = False
        self.cut = False

    def on_wake(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def snapshot(self) -> EngineSnapshot:
        counts = BlockCounts(block_size=self._block_size)
        return replace(super().snapshot(), blocks=counts)

    def submit(self, request: Request) -> str:
        request_id = super().submit(request)
        if not self.hold:
            self._answer(request)
        return request_id

    def cancel(self, request_id: str) -> None:
        super().cancel(request_id)
        request = next(one for one in self.requests if one.request_id == request_id)
        self._deliver(request, "", FinishReason.ABORT)

    def drain(self, request_id: str) -> TokenBatch | None:
        return super().drain(request_id) if request_id in self._mail else None

    def prompt_text(self, at: int = -1) -> str:
        return self.detokenize(self.requests[at].prompt_ids, skip_special=False)

    def _answer(self, request: Request) -> None:
        if request.sampling.logprob_token_ids:
            assert self._scores is not None
            text = self.detokenize(request.prompt_ids)
            by_letter = self._scores(request, text)
            letters = map(self.detokenize, ([one] for one in request.sampling.logprob_token_ids))
            self._deliver(
                request,
                "A",
                FinishReason.LENGTH,
                (tuple(by_letter.get(letter, -9.0) for letter in letters),),
            )
            return
        text = self._script.pop(0)
        if request.sampling.grammar is not None and not accepts(request.sampling.grammar, text):
            assert self.cut, text
            self._deliver(request, text, FinishReason.LENGTH)
            return
        assert request.sampling.max_tokens is None or len(text) <= request.sampling.max_tokens
        self._deliver(request, text, FinishReason.STOP)

    def _deliver(
        self,
        request: Request,
        text: str,
        finish: FinishReason,
        scores: tuple[tuple[float, ...], ...] = (),
    ) -> None:
        self._mail[request.request_id].append(
            TokenBatch(
                request_id=request.request_id,
                token_ids=tuple(self.tokenizer.encode(text)),
                text=text,
                timings=Timings(0.0, 0.25, 0.5, 1.5),
                seed=0,
                token_id_logprobs=scores,
                finish_reason=finish,
            )
        )
        for callback in self._callbacks:
            callback()


@cache
def _byte_tokenizer() -> LLTokenizer:
    return LLTokenizer("byte")


def accepts(grammar: Grammar, text: str) -> bool:
    """Whether the text is one of the grammar's, byte by byte."""
    matcher = LLMatcher(
        _byte_tokenizer(), library_text(grammar, parse_source(grammar))[0], log_level=0
    )
    return all(matcher.consume_token(one) for one in text.encode()) and matcher.is_accepting()
