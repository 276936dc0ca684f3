"""`InProcessClient`: the `EngineClient` of an engine in this process."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from engine.api.chat import ChatMessage
from engine.api.embeddings import Embeddings
from engine.api.fork_price import ForkPrice
from engine.api.request import Request, SamplingParams, TokenBatch
from engine.api.scheduling import Scheduling
from engine.api.snapshot import BlockMap, EngineSnapshot
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.request_handle import RequestHandle
from engine.text.control_tokens import ControlTokens


class InProcessClient:
    """An `EngineClient` over an engine that it owns: `close` shuts it down."""

    def __init__(self, engine: AsyncPravahaEngine) -> None:
        self._engine = engine
        self._handles: dict[str, RequestHandle] = {}

    def submit(self, request: Request) -> str:
        """Queue a request; see `EngineClient.submit`."""
        handle = self._engine.submit(request)
        self._handles[handle.request_id] = handle
        return handle.request_id

    def cancel(self, request_id: str) -> None:
        """Abort a request; unknown ids are ignored."""
        self._engine.abort(request_id)

    def drain(self, request_id: str) -> TokenBatch | None:
        """All new tokens of the request, or None; the final batch removes the request."""
        handle = self._handles.get(request_id)
        batch = None if handle is None else handle.drain()
        if batch is not None and batch.finish_reason is not None:
            del self._handles[request_id]
        return batch

    def fork(
        self,
        request_id: str,
        *,
        at: int | None = None,
        n: int = 1,
        sampling: SamplingParams | None = None,
    ) -> list[str]:
        """Fork a running request; see `EngineClient.fork`."""
        handles = self._engine.fork(request_id, at=at, n=n, sampling=sampling)
        self._handles |= {handle.request_id: handle for handle in handles}
        return [handle.request_id for handle in handles]

    def price(self, token_ids: Sequence[int]) -> ForkPrice:
        """The predicted cost of a request with these tokens."""
        return self._engine.price(token_ids)

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """Change policy and batch former."""
        self._engine.set_scheduling(scheduling)

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of texts."""
        return self._engine.embed(texts)

    def snapshot(self) -> EngineSnapshot:
        """The engine at its last step boundary."""
        return self._engine.snapshot()

    def blocks(self, since: int) -> BlockMap | None:
        """The KV blocks, or None if nothing changed after epoch `since`."""
        return self._engine.blocks(since)

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of text."""
        return self._engine.tokenizer.encode(text, special=special)

    def control_tokens(self) -> ControlTokens:
        """The model's control tokens."""
        return self._engine.tokenizer.control_tokens

    def detokenize(self, token_ids: Sequence[int], *, skip_special: bool = True) -> str:
        """Text of token ids."""
        return self._engine.tokenizer.decode(token_ids, skip_special=skip_special)

    def render_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> str:
        """The model's chat template applied to messages."""
        return self._engine.tokenizer.render_chat(
            messages, add_generation_prompt=add_generation_prompt
        )

    def tokenizer_fingerprint(self) -> str:
        """Identifies the tokenizer."""
        return self._engine.tokenizer.fingerprint

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Call `callback` when a mailbox becomes non-empty or the state changes."""
        self._engine.on_wake(callback)

    def yield_core(self) -> AbstractContextManager[None]:
        """A context in which the engine computes on one core less."""
        return self._engine.yield_core()

    def close(self) -> None:
        """Shut the engine down."""
        self._engine.shutdown()
