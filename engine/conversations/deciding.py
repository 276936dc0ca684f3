"""`Deciding`: the rows by which an answer with tools is planned, while the engine computes them."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from engine.api.request import Request, TokenBatch
from engine.clients.engine_client import EngineClient
from engine.conversations.submission import PreparedAnswers
from engine.grammar.call_plan import CallPlanner

Submit = Callable[[Request, EngineClient], "Future[str]"]
"""Submits a request that is no answer; see `Answering.submit_aside`."""


class Deciding:
    """The rows of one answer. Their prompt is the answer's, so that is read once.

    Attributes:
        prepared: the answer, without its plan.
        began: when the rows were submitted, monotonic seconds.
        cached_tokens: how many tokens of the prompt were cached before the rows, once they are computed.
    """

    def __init__(
        self, prepared: PreparedAnswers, planner: CallPlanner, submit: Submit, began: float
    ) -> None:
        """Submit the rows of `planner`, that of `prepared`. One that is refused is reported by `is_done`."""
        self.prepared = prepared
        self.began = began
        self.cached_tokens = 0
        self.submitted: Sequence[Future[str]] = [
            submit(Request(ids, sampling), prepared.client)
            for ids, sampling in planner.rows(prepared.token_ids)
        ]
        self._planner = planner
        self._outputs: dict[int, TokenBatch] = {}
        self._is_decided = False

    @property
    def request_id(self) -> str | None:
        """The request that reads the prompt; None before it is submitted."""
        done = [one for one in self.submitted if one.done() and one.exception() is None]
        return done[0].result() if done else None

    @property
    def unfinished(self) -> "Sequence[Future[str]]":
        """The rows whose end was not drained yet."""
        return [one for index, one in enumerate(self.submitted) if not self._has_ended(index)]

    def is_for(self, client: EngineClient) -> bool:
        """Whether a client has the model that the rows were made for. Another one has other token ids."""
        model = client.snapshot().model
        name = None if model is None else model.name
        made_for = (self.prepared.model, self.prepared.tokenizer)
        return made_for == (name, client.tokenizer_fingerprint())

    def is_done(self) -> bool:
        """Whether the plan is made; drains the rows, which keep their model until then.

        Raises:
            PravahaError: a row was refused; the others may still run.
        """
        if self._is_decided:
            return True
        for index, future in enumerate(self.submitted):
            if not future.done() or self._has_ended(index):
                continue
            batch = self.prepared.client.drain(future.result())
            if batch is not None:
                before = self._outputs.get(index)
                self._outputs[index] = batch if before is None else _joined(before, batch)
        if self.unfinished:
            return False
        outputs = [self._outputs[index] for index in range(len(self.submitted))]
        self._planner.decide(outputs)
        self.cached_tokens = min((one.cached_tokens for one in outputs), default=0)
        self._is_decided = True
        return True

    def _has_ended(self, index: int) -> bool:
        output = self._outputs.get(index)
        return output is not None and output.finish_reason is not None


def _joined(first: TokenBatch, last: TokenBatch) -> TokenBatch:
    """The output of a row whose token and whose end were drained apart."""
    return replace(last, token_id_logprobs=first.token_id_logprobs + last.token_id_logprobs)
