"""`InProcessClient`: the engine in this process, behind the seam of `engine.clients.engine_client`."""

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
        """Ask for the request's end; unknown ids are ignored."""
        self._engine.abort(request_id)

    def drain(self, request_id: str) -> TokenBatch | None:
        """Everything new for the request, or None; the final batch forgets it."""
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
        """Go on from where a live request is in other ways; see `EngineClient.fork`."""
        handles = self._engine.fork(request_id, at=at, n=n, sampling=sampling)
        self._handles |= {handle.request_id: handle for handle in handles}
        return [handle.request_id for handle in handles]

    def price(self, token_ids: Sequence[int]) -> ForkPrice:
        """What a request with these tokens would cost now."""
        return self._engine.price(token_ids)

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """Go on with another policy and batch former."""
        self._engine.set_scheduling(scheduling)

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Texts as vectors."""
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
        """Changes when stored token ids would mean other text."""
        return self._engine.tokenizer.fingerprint

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Call `callback` when a mailbox goes from empty to non-empty or the state changes."""
        self._engine.on_wake(callback)

    def lend_core(self) -> AbstractContextManager[None]:
        """Inside it, compute on one processor less."""
        return self._engine.lend_core()

    def close(self) -> None:
        """Shut the engine down."""
        self._engine.shutdown()
