"""One answer that is being written: what the engine sent so far, and when it was last saved."""

import json
from dataclasses import asdict, replace

from engine.api.request import FinishReason, SamplingParams, Timings, TokenBatch, TopLogprob
from engine.conversations.tree import Node, NodeDelta, NodeStatus

FLUSH_S = 0.5
"""A streaming answer is saved at most this often, and at its end."""

_STATUS = {
    FinishReason.STOP: NodeStatus.DONE,
    FinishReason.LENGTH: NodeStatus.DONE,
    FinishReason.ABORT: NodeStatus.STOPPED,
    FinishReason.ERROR: NodeStatus.ERROR,
}


class Answer:
    """Collects the batches of one request into its node.

    Attributes:
        request_id: None until the engine took the request (it may still be loading).
        sampling: how it is written.
    """

    def __init__(self, node: Node, sampling: SamplingParams, now: float) -> None:
        self.request_id: str | None = None
        self.sampling = sampling
        self._node = replace(node, sampling=_sampling_json(sampling))
        self._text: list[str] = []
        self._ids: list[int] = []
        self._logprobs: list[float] = []
        self._topk: list[tuple[TopLogprob, ...]] = []
        self._saved_at = now
        self._unsaved = False

    @property
    def node_id(self) -> str:
        """The node being written."""
        return self._node.id

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._node.status is not NodeStatus.STREAMING

    @property
    def n_gen(self) -> int:
        """Tokens written so far."""
        return len(self._ids)

    @property
    def n_prompt(self) -> int:
        """Tokens fed; 0 until submitted."""
        return self._node.n_prompt or 0

    def submitted(
        self, request_id: str, *, n_prompt: int, tokenizer: str, model: str | None
    ) -> None:
        """The engine took the request."""
        self.request_id = request_id
        self._node = replace(self._node, n_prompt=n_prompt, tokenizer=tokenizer, model=model)

    def take(self, batch: TokenBatch) -> NodeDelta:
        """Add a batch; what it changed."""
        self._text.append(batch.text)
        self._ids += batch.token_ids
        self._logprobs += batch.logprobs
        self._topk += batch.top_logprobs
        self._unsaved = True
        status = NodeStatus.STREAMING
        if batch.finish_reason is not None:
            status = _STATUS[batch.finish_reason]
        self._node = replace(
            self._node,
            status=status,
            finish=batch.finish_reason.value if batch.finish_reason else None,
            error=batch.error,
            seed=batch.seed,
            n_cached=batch.cached_tokens,
            ttft_us=_microseconds(batch.timings.ttft),
            decode_us=_microseconds(_decode_seconds(batch.timings)),
        )
        return NodeDelta(self.node_id, batch.text, status, self._node.finish, batch.error)

    def end(self, status: NodeStatus, finish: FinishReason, error: str | None = None) -> NodeDelta:
        """End without the engine's word: it never took the request, or we are closing."""
        self._unsaved = True
        self._node = replace(self._node, status=status, finish=finish.value, error=error)
        return NodeDelta(self.node_id, "", status, finish.value, error)

    def due(self, now: float) -> bool:
        """Whether there is something to save and it is time, or the answer ended."""
        if not self._unsaved:
            return False
        return self.ended or now - self._saved_at >= FLUSH_S

    def saved(self, now: float) -> None:
        """The node as of now was given to the store."""
        self._saved_at = now
        self._unsaved = False

    def node(self) -> Node:
        """The node as it is now."""
        return replace(
            self._node,
            text="".join(self._text),
            token_ids=tuple(self._ids) or None,
            logprobs=tuple(self._logprobs),
            topk=tuple(self._topk),
            n_gen=len(self._ids),
        )


def _sampling_json(sampling: SamplingParams) -> str:
    return json.dumps(asdict(sampling), separators=(",", ":"))


def _decode_seconds(timings: Timings) -> float | None:
    first, last = timings.first_token, timings.last_token
    return None if first is None or last is None else last - first


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)
