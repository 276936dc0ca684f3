"""`EngineClient`, the interface of front ends to an engine: the screen, the plain chat, `pravaha run`.

It has two transports: `InProcessClient` (a thread in this process) and `HttpClient`
(`pravaha --attach URL`). No tensors cross it, and no call waits for an engine step. The HTTP server
does not use it: `app.server` calls `AsyncPravahaEngine` directly.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from engine.api.chat import ChatMessage
from engine.api.embeddings import Embeddings
from engine.api.fork_price import ForkPrice
from engine.api.request import Request, SamplingParams, TokenBatch
from engine.api.scheduling import Scheduling
from engine.api.snapshot import BlockMap, EngineSnapshot
from engine.text.control_tokens import ControlTokens


class EngineClient(Protocol):
    """The calls of a front end to an engine.

    Threads: every method may be called from any one thread at a time; none waits for an engine step.
    Tokens are never dropped: they stay in the request's mailbox until they are drained. Draining the
    final batch (the one with `finish_reason`) removes the request.
    """

    def submit(self, request: Request) -> str:
        """Queue a request and return its id.

        Raises:
            InvalidRequest: a parameter out of range or a prompt longer than the context.
            QueueFull: the bounded queue is full.
            EngineUnavailable: loading failed, draining or stopped. Requests during loading are queued.
        """
        ...

    def cancel(self, request_id: str) -> None:
        """Abort the request at the next step boundary; unknown ids are ignored."""
        ...

    def drain(self, request_id: str) -> TokenBatch | None:
        """All new tokens of the request as one batch, or None. Never blocks."""
        ...

    def fork(
        self,
        request_id: str,
        *,
        at: int | None = None,
        n: int = 1,
        sampling: SamplingParams | None = None,
    ) -> list[str]:
        """Fork a running request into `n` children; their ids.

        The children share the parent's KV blocks and are drained like any request; their prompt is the
        parent's tokens up to the fork.

        Args:
            request_id: the parent. To continue a finished request, submit its token ids.
            at: number of tokens of prompt and answer to share; None shares all current ones.
            n: number of children.
            sampling: their parameters; None takes the parent's, with the parent's total length.

        Raises:
            InvalidRequest: no such running request, no such token, or as `submit`.
            QueueFull: not all children fit into the queue; none is submitted.
            EngineUnavailable: as `submit`.
        """
        ...

    def price(self, token_ids: Sequence[int]) -> ForkPrice:
        """The predicted cost of a request with these tokens.

        Raises:
            InvalidRequest: the tokens are not a valid prompt.
            EngineUnavailable: the model cannot be opened, or the server does not answer.
        """
        ...

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """Change policy and batch former from the next step on; the snapshot shows those in force.

        Raises:
            InvalidRequest: an unknown or invalid value.
            EngineUnavailable: the engine has stopped, or the server does not answer.
        """
        ...

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of texts, computed by the embedding model. Waits for the encoder.

        Raises:
            InvalidRequest: a text is empty or too long for the encoder.
            ModelNotFound: no embedding model is installed where the engine runs.
            QueueFull: too many calls are pending.
            EngineUnavailable: stopped, or the server does not answer.
        """
        ...

    def snapshot(self) -> EngineSnapshot:
        """The engine at its last step boundary."""
        ...

    def blocks(self, since: int) -> BlockMap | None:
        """The KV blocks, or None if nothing changed after epoch `since` (-1 for the first call)."""
        ...

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of text; control tokens are recognised only with `special`."""
        ...

    def control_tokens(self) -> ControlTokens:
        """The model's control tokens; constant while the fingerprint is."""
        ...

    def detokenize(self, token_ids: Sequence[int], *, skip_special: bool = True) -> str:
        """Text of token ids."""
        ...

    def render_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> str:
        """The model's chat template applied to messages.

        Raises:
            InvalidRequest: the template rejects the messages.
        """
        ...

    def tokenizer_fingerprint(self) -> str:
        """Identifies the tokenizer: equal fingerprints map token ids to equal text."""
        ...

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Call `callback` when a mailbox becomes non-empty or the engine's state changes.

        The callback runs on any thread and must return immediately.
        """
        ...

    def yield_core(self) -> AbstractContextManager[None]:
        """A context in which an in-process engine computes on one core less; any thread.

        For computations of a few milliseconds, which would otherwise preempt one of the engine's threads
        in the middle of a kernel while the others wait for it.
        """
        ...

    def close(self) -> None:
        """Release the engine; an in-process one is shut down cleanly."""
        ...
