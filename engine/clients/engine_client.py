"""`EngineClient`, the interface of front ends to an engine: the screen, the plain chat, `pravaha run`.

It has two transports: `InProcessClient` (a thread in this process) and `HttpClient`
(`pravaha --attach URL`). No tensors cross it, and no call waits for an engine step. The HTTP server
does not use it: `app.server` calls `AsyncPravahaEngine` directly.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Protocol

from engine.api.available_model import AvailableModel
from engine.api.block_detail import BlockDetail, PrefixTree
from engine.api.chat import ChatMessage
from engine.api.embeddings import Embeddings
from engine.api.event_ring import EventBatch
from engine.api.fork_price import ForkPrice
from engine.api.image import Image, PlacedImage
from engine.api.request import Request, SamplingParams, TokenBatch
from engine.api.request_status import RequestStatus
from engine.api.residency import Residency
from engine.api.scheduling import Scheduling
from engine.api.snapshot import BlockMap, EngineSnapshot
from engine.api.step_view import PlannedStep, StepEntry
from engine.runtime.model_change import CHANGE_DRAIN_S
from engine.text.control_tokens import ControlTokens
from engine.text.reasoning_markers import ReasoningMarkers
from engine.text.tool_messages import TemplateTool


class EngineClient(Protocol):
    """The calls of a front end to an engine.

    Threads: every method may be called from any one thread at a time; none waits for an engine step.
    `models`, `load_model` and `unload_model` read files and may run on another thread beside that one.
    Over HTTP, `submit`, `fork`, `embed`, `set_scheduling` and those three are a round trip; all others
    return at once.
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

    def price(self, token_ids: Sequence[int]) -> "Future[ForkPrice]":
        """The predicted cost of a request with these tokens.

        In process the future is done at once; over HTTP `on_wake` callbacks run when it is. It fails
        with `InvalidRequest` if the tokens are not a valid prompt, and with `EngineUnavailable` if the
        model cannot be opened or the server does not answer.
        """
        ...

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """Change policy and batch former from the next step on; the snapshot shows those in force.

        Raises:
            InvalidRequest: an unknown or invalid value.
            EngineUnavailable: the engine has stopped, or the server does not answer.
        """
        ...

    def models(self) -> Sequence[AvailableModel]:
        """The models installed where the engine runs, and whether each can be loaded.

        Reads their headers, up to 0.3 s a model: call it off the event loop.

        Raises:
            ModelError: the list of models is damaged.
            EngineUnavailable: the server does not answer.
        """
        ...

    def load_model(self, name: str, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        """Replace the engine's model by an installed one; returns once its headers are read.

        New requests are refused until it is loaded. Running ones get `drain_s` seconds to finish and then
        fail; a second call for the same model shortens that. The snapshot shows the progress.

        Raises:
            InvalidRequest: it is loaded already, or `drain_s` is out of range.
            ModelNotFound: no such model is installed.
            ModelError: it cannot be used, or does not fit in memory; the engine keeps its model.
            EngineUnavailable: a model is being loaded, the engine stops, or the server does not answer.
        """
        ...

    def unload_model(self, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        """Free the engine's model; requests are treated as by `load_model`.

        Raises:
            InvalidRequest: `drain_s` is out of range.
            EngineUnavailable: there is none or it is being changed, or the server does not answer.
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

    def request_table(self) -> tuple[RequestStatus, ...]:
        """The live requests: running ones first, both kinds in order of arrival, at most 256.

        Built when it is called; the engine does nothing for it. Over HTTP the result of the last poll.
        """
        ...

    def block(self, block: int) -> BlockDetail | None:
        """What one KV block holds: owners, tokens as text, position, relatives in the prefix cache.

        Read now, on the caller's thread. Over HTTP the answer arrives later: the call returns None or
        what was known last, and asks the server; `on_wake` callbacks run when the answer is there.

        Raises:
            InvalidRequest: the pool has no such block (in process only).
        """
        ...

    def prefix_tree(self) -> PrefixTree | None:
        """The prefix cache as at most 128 chains of blocks; None until it is known.

        Costs the caller a few milliseconds: call it once or twice a second. Over HTTP as `block`.
        """
        ...

    def residency(self, token_ids: Sequence[int]) -> Residency | None:
        """How many leading tokens are in the pool and in the swap tier, in whole blocks. O(n / block).

        Over HTTP as `block`: None until the answer has arrived, then the last answer for these tokens.

        Raises:
            InvalidRequest: the tokens are not a valid prompt (in process only).
            EngineUnavailable: the model cannot be opened (in process only).
        """
        ...

    def pin(self, token_ids: Sequence[int]) -> str:
        """Keep the cached blocks of a prefix in the pool until `unpin`; returns the pin's id at once.

        Takes effect at the next step boundary. The event `PrefixPinned` tells how many blocks it covers:
        only full blocks that are cached then, and all pins together at most half of the pool. The
        oldest pin is dropped (`PrefixUnpinned.dropped`) when a request could not run otherwise.

        Raises:
            InvalidRequest: the tokens are not a valid prompt (in process only).
            EngineUnavailable: the model cannot be opened (in process only).
        """
        ...

    def unpin(self, pin_id: str) -> None:
        """End a pin; its blocks stay cached until they are evicted. Unknown ids are ignored."""
        ...

    def recent_steps(self, since: int) -> tuple[StepEntry, ...]:
        """The last steps (at most 600) after step number `since` (0 for all), oldest first."""
        ...

    def planned_step(self) -> PlannedStep | None:
        """The plan of a recent step: its requests, their tokens and the budget; None until there is one.

        Each call asks for the plan of the next step, so a view that is drawn shows one that is as old as
        its last drawing; `PlannedStep.number` tells which.
        """
        ...

    def events(self, since: int) -> EventBatch:
        """The events from number `since` on: 0 for the first call, then `EventBatch.next`. Never waits.

        Several readers may follow the events, each with its own number. Times are on the clock of
        `EngineSnapshot.time`.
        """
        ...

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of text; control tokens are recognised only with `special`."""
        ...

    def control_tokens(self) -> ControlTokens:
        """The model's control tokens; constant while the fingerprint is."""
        ...

    def bos_id(self) -> int | None:
        """The token that plain completions begin with, or None if the model uses none."""
        ...

    def detokenize(self, token_ids: Sequence[int], *, skip_special: bool = True) -> str:
        """Text of token ids."""
        ...

    def token_texts(self, token_ids: Sequence[int]) -> list[str]:
        """The text that each token adds to that of the tokens before it; joined, `detokenize`.

        A character of several tokens is added whole by the last of them.
        """
        ...

    def render_chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The model's chat template applied to messages, and to the tools that the model may call.

        `variables` are further ones of the template, such as `enable_thinking`.

        Raises:
            InvalidRequest: the template rejects the messages.
        """
        ...

    def reasoning_markers(self) -> ReasoningMarkers | None:
        """How the model marks its reasoning; None for a model without any."""
        ...

    def controls_reasoning(self) -> bool:
        """Whether `SamplingParams.reasoning` and `end_reasoning` have an effect."""
        ...

    def end_reasoning(self, request_id: str) -> None:
        """End a request's reasoning at the next step boundary; nothing happens if it does not reason.

        Raises:
            InvalidRequest: the engine is a server, which is not told.
        """
        ...

    def tool_template(self) -> str:
        """The source of the chat template that the model has for tools; empty if there is none."""
        ...

    def place_images(
        self, prompt_ids: Sequence[int], images: Sequence[Image]
    ) -> tuple[tuple[int, ...], tuple[PlacedImage, ...]]:
        """A prompt with the tokens of its images in place of its placeholders, and their places.

        Decodes images that were not seen lately, about 10 ns a pixel.

        Raises:
            InvalidRequest: the model sees no images, the placeholders are not as many as the images, an
                image is damaged or too large, or the engine is a server, which takes images in its API only.
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
