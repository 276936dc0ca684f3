"""`InProcessClient`: the `EngineClient` of an engine in this process."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any

from engine.api.available_model import AvailableModel
from engine.api.block_detail import BlockDetail, PrefixTree
from engine.api.chat import ChatMessage
from engine.api.embeddings import Embeddings
from engine.api.errors import PravahaError
from engine.api.event_ring import EventBatch
from engine.api.fork_price import ForkPrice
from engine.api.image import Image, PlacedImage
from engine.api.request import Request, SamplingParams, TokenBatch
from engine.api.request_status import RequestStatus
from engine.api.residency import Residency, new_pin_id
from engine.api.scheduling import Scheduling
from engine.api.snapshot import BlockMap, EngineSnapshot
from engine.api.step_view import PlannedStep, StepEntry
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.model_change import CHANGE_DRAIN_S
from engine.runtime.request_handle import RequestHandle
from engine.text.control_tokens import ControlTokens
from engine.text.reasoning_markers import ReasoningMarkers
from engine.text.tool_messages import TemplateTool


class InProcessClient:
    """An `EngineClient` over an engine that it owns: `close` shuts it down."""

    def __init__(self, engine: AsyncPravahaEngine) -> None:
        self._own_engine = engine
        self._handles: dict[str, RequestHandle] = {}

    @property
    def _engine(self) -> AsyncPravahaEngine:
        """The engine that is asked."""
        return self._own_engine

    def submit(self, request: Request) -> str:
        """Queue a request; see `EngineClient.submit`."""
        handle = self._engine.submit(request)
        self._handles[handle.request_id] = handle
        return handle.request_id

    def cancel(self, request_id: str) -> None:
        """Abort a request; unknown ids are ignored."""
        self._engine_of(request_id).abort(request_id)

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
        engine = self._engine_of(request_id)
        handles = engine.fork(request_id, at=at, n=n, sampling=sampling)
        self._handles |= {handle.request_id: handle for handle in handles}
        return [handle.request_id for handle in handles]

    def price(self, token_ids: Sequence[int]) -> "Future[ForkPrice]":
        """The predicted cost of a request with these tokens, done at once."""
        future: Future[ForkPrice] = Future()
        try:
            future.set_result(self._engine.price(token_ids))
        except PravahaError as error:
            future.set_exception(error)
        return future

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """Change policy and batch former."""
        self._engine.set_scheduling(scheduling)

    def models(self) -> Sequence[AvailableModel]:
        """The installed models; reads their headers."""
        return self._engine.models()

    def load_model(self, name: str, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        """Replace the model by an installed one; see `EngineClient.load_model`."""
        self._engine.load_model(name, drain_s=drain_s)

    def unload_model(self, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        """Free the model; see `EngineClient.unload_model`."""
        self._engine.unload_model(drain_s=drain_s)

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of texts."""
        return self._engine.embed(texts)

    def snapshot(self) -> EngineSnapshot:
        """The engine at its last step boundary."""
        return self._engine.snapshot()

    def blocks(self, since: int) -> BlockMap | None:
        """The KV blocks, or None if nothing changed after epoch `since`."""
        return self._engine.blocks(since)

    def request_table(self) -> tuple[RequestStatus, ...]:
        """The live requests, running ones first."""
        return self._engine.request_table()

    def block(self, block: int) -> BlockDetail | None:
        """What one KV block holds."""
        return self._engine.block(block)

    def prefix_tree(self) -> PrefixTree | None:
        """The prefix cache as chains of blocks."""
        return self._engine.prefix_tree()

    def residency(self, token_ids: Sequence[int]) -> Residency | None:
        """How many leading tokens are in the pool and in the swap tier."""
        return self._engine.residency(token_ids)

    def pin(self, token_ids: Sequence[int]) -> str:
        """Keep the cached blocks of a prefix in the pool; returns the pin's id."""
        pin_id = new_pin_id()
        self._engine.pin(token_ids, pin_id=pin_id)
        return pin_id

    def unpin(self, pin_id: str) -> None:
        """End a pin."""
        self._engine.unpin(pin_id)

    def recent_steps(self, since: int) -> tuple[StepEntry, ...]:
        """The last steps after step number `since`."""
        return self._engine.recent_steps(since)

    def planned_step(self) -> PlannedStep | None:
        """The plan of a recent step."""
        return self._engine.planned_step()

    def events(self, since: int) -> EventBatch:
        """The events from number `since` on."""
        return self._engine.events_since(since)

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of text."""
        return self._engine.tokenizer.encode(text, special=special)

    def control_tokens(self) -> ControlTokens:
        """The model's control tokens."""
        return self._engine.tokenizer.control_tokens

    def detokenize(self, token_ids: Sequence[int], *, skip_special: bool = True) -> str:
        """Text of token ids."""
        return self._engine.tokenizer.decode(token_ids, skip_special=skip_special)

    def token_texts(self, token_ids: Sequence[int]) -> list[str]:
        """The text that each token adds."""
        return self._engine.tokenizer.token_texts(token_ids)

    def render_chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The model's chat template applied to messages."""
        return self._engine.tokenizer.render_chat(
            messages, add_generation_prompt=add_generation_prompt, tools=tools, variables=variables
        )

    def reasoning_markers(self) -> ReasoningMarkers | None:
        """How the model marks its reasoning."""
        return self._engine.tokenizer.reasoning

    def controls_reasoning(self) -> bool:
        """Always."""
        return True

    def end_reasoning(self, request_id: str) -> None:
        """End a request's reasoning at the next step boundary."""
        self._engine_of(request_id).end_reasoning(request_id)

    def tool_template(self) -> str:
        """The source of the chat template that the model has for tools."""
        return self._engine.tokenizer.tool_template

    def place_images(
        self, prompt_ids: Sequence[int], images: Sequence[Image]
    ) -> tuple[tuple[int, ...], tuple[PlacedImage, ...]]:
        """A prompt with the tokens of its images; see `EngineClient.place_images`."""
        return self._engine.place_images(prompt_ids, images)

    def bos_id(self) -> int | None:
        """The token that plain completions begin with."""
        tokenizer = self._engine.tokenizer
        return tokenizer.bos_id if tokenizer.add_bos else None

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

    def _engine_of(self, request_id: str) -> AsyncPravahaEngine:
        """The engine that has a request."""
        return self._engine
