"""The seam between the engine and whoever drives it: the screen, the plain chat, the server.

Two transports obey it equally: `InProcessClient` (a thread in this process) and `HttpClient`
(`pravaha --attach URL`). No tensor types cross it and nothing here blocks for a step.
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
    """What a front end may ask of an engine.

    Threads: every method may be called from any one thread at a time; none waits for the engine's
    step. Tokens are never dropped: what is not drained stays in the request's mailbox. Draining the
    final batch (the one with `finish_reason`) forgets the request.
    """

    def submit(self, request: Request) -> str:
        """Queue a request and return its id.

        Raises:
            InvalidRequest: a parameter out of range or a prompt longer than the context.
            QueueFull: the bounded queue is full.
            EngineUnavailable: loading failed, draining or stopped. While loading, requests queue.
        """
        ...

    def cancel(self, request_id: str) -> None:
        """Ask for the request to end at the next step boundary; unknown ids are ignored."""
        ...

    def drain(self, request_id: str) -> TokenBatch | None:
        """Everything new for the request, or None when nothing is new. Never blocks."""
        ...

    def fork(
        self,
        request_id: str,
        *,
        at: int | None = None,
        n: int = 1,
        sampling: SamplingParams | None = None,
    ) -> list[str]:
        """Go on from where a live request is in `n` other ways; the children's ids.

        They share the parent's KV blocks and are drained like any request; their prompt is the
        parent's tokens up to the fork.

        Args:
            request_id: the parent. One that ended is continued by submitting its token ids.
            at: how many tokens of prompt and answer to share; None shares all there are now.
            n: children.
            sampling: how they go on; None does as the parent, up to the parent's length.

        Raises:
            InvalidRequest: no such live request, no such token, or what `submit` refuses.
            QueueFull: not all children fit into the queue; none runs.
            EngineUnavailable: as `submit`.
        """
        ...

    def price(self, token_ids: Sequence[int]) -> ForkPrice:
        """What a request with these tokens would cost now; waits for no step.

        Raises:
            InvalidRequest: the tokens cannot be a prompt.
            EngineUnavailable: the model cannot be opened, or the server is away.
        """
        ...

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """Go on with another policy and batch former; the snapshot shows it once it is in force.

        Raises:
            InvalidRequest: a value that is none.
            EngineUnavailable: the engine has stopped, or the server is away.
        """
        ...

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Texts as vectors, by the embedding model. Waits for it, not for the engine's step.

        Raises:
            InvalidRequest: a text is empty or too long for the encoder.
            ModelNotFound: no embedding model is installed where the engine runs.
            QueueFull: too many calls are pending.
            EngineUnavailable: stopped, or the server is away.
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
        """The model's control tokens; they stay while the fingerprint does."""
        ...

    def detokenize(self, token_ids: Sequence[int], *, skip_special: bool = True) -> str:
        """Text of token ids."""
        ...

    def render_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> str:
        """The model's chat template applied to messages.

        Raises:
            InvalidRequest: the template refuses the messages.
        """
        ...

    def tokenizer_fingerprint(self) -> str:
        """Changes when stored token ids would mean other text."""
        ...

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Call `callback` when a mailbox is filled or the engine's state changes.

        Filled means from empty to non-empty. The callback runs on any thread and must return at
        once.
        """
        ...

    def lend_core(self) -> AbstractContextManager[None]:
        """Inside it, compute on one processor less if the engine runs in this process, any thread.

        For work that takes milliseconds and would interrupt the engine in the middle of a piece of its own.
        """
        ...

    def close(self) -> None:
        """Give the engine back; in-process, shut it down cleanly."""
        ...
