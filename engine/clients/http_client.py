"""`HttpClient`: an engine in another process, driven over its HTTP API (`pravaha --attach URL`).

A facade over four parts: `HttpConnection` (the background thread and its requests), `TokenStreams`
(an SSE stream and a mailbox for each request), `EnginePoller` (snapshot, KV blocks, events, requests, steps
and the tokenizer) and `HttpLookups` (questions about blocks and prefixes).
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import quote

from engine.api.available_model import AvailableModel
from engine.api.block_detail import BlockDetail, PrefixTree
from engine.api.chat import ChatMessage
from engine.api.decisions import (
    MARGIN,
    MIN_LABEL_MASS,
    DecisionQuestion,
    DecisionRules,
    Decisions,
)
from engine.api.embeddings import Embeddings
from engine.api.errors import EngineUnavailable, InvalidRequest, ModelNotFound, PravahaError
from engine.api.event_ring import EventBatch
from engine.api.fork_price import ForkPrice
from engine.api.image import Image, PlacedImage
from engine.api.request import Request, SamplingParams, TokenBatch, new_request_id
from engine.api.request_status import RequestStatus
from engine.api.residency import Residency, new_pin_id
from engine.api.scheduling import Scheduling
from engine.api.snapshot import BlockMap, EngineSnapshot
from engine.api.step_view import PlannedStep, StepEntry
from engine.clients.decision_wire import decision_body, decisions
from engine.clients.detail_wire import block_detail, prefix_tree, residency
from engine.clients.http_connection import READ_TIMEOUT_S, ROUND_TRIP_S, SILENCE_S, HttpConnection
from engine.clients.http_lookups import HttpLookups
from engine.clients.http_polling import EnginePoller
from engine.clients.http_streams import TokenStreams
from engine.clients.http_wire import (
    FORKED_AT,
    available_models,
    completion_body,
    embeddings,
    fork_body,
    fork_price,
)
from engine.models.demo import MINILM
from engine.runtime.model_change import CHANGE_DRAIN_S, MAX_CHANGE_DRAIN_S
from engine.text.control_tokens import ControlTokens
from engine.text.reasoning_markers import ReasoningMarkers
from engine.text.tokenizer import Tokenizer
from engine.text.tool_messages import TemplateTool

_DECISIONS_S = 3600.0
"""A long input takes as long as its prefill."""


class HttpClient:
    """`EngineClient` over HTTP.

    Questions about tokens and templates are answered by a copy of the server's tokenizer. Until it has
    arrived the engine is `loading`, and they raise `EngineUnavailable`.

    Threads: `submit` and `fork` may run on one thread beside the one that calls all others
    (`engine.conversations.background`).
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        silence_s: float = SILENCE_S,
        clock: Callable[[], float] = time.monotonic,
        model: str | None = None,
    ) -> None:
        """Join the server at `url` (with or without a trailing `/v1`); returns before it answers.

        Args:
            url: the server.
            api_key: its key.
            silence_s: how long it may be silent before it counts as away; more than its keep-alive interval.
            clock: monotonic seconds.
            model: the only model to ask for, of a server of several; None for the first or only one.

        Raises:
            InvalidRequest: the URL is not an http(s) one.
        """
        url = url.rstrip("/").removesuffix("/v1")
        if not url.startswith(("http://", "https://")):
            raise InvalidRequest(f"{url!r} is not the URL of a server: it must start with http://.")
        self._wake_callbacks: list[Callable[[], None]] = []
        self._connection = HttpConnection(url, api_key=api_key, silence_s=silence_s, model=model)
        self._streams = TokenStreams(self._connection, wake=self._wake, clock=clock)
        self._poller = EnginePoller(self._connection, wake=self._wake, clock=clock)
        self._lookups = HttpLookups(self._connection, clock, self._wake)
        self._connection.start(self._poller.run)

    def submit(self, request: Request) -> str:
        """See `EngineClient`; one round trip."""
        self.place_images(request.prompt_ids, [placed.image for placed in request.images])
        self._connection.call(self._submit(request))
        return request.request_id

    def cancel(self, request_id: str) -> None:
        """See `EngineClient`."""
        self._streams.cancel(request_id)

    def drain(self, request_id: str) -> TokenBatch | None:
        """See `EngineClient`."""
        return self._streams.drain(request_id)

    def fork(
        self,
        request_id: str,
        *,
        at: int | None = None,
        n: int = 1,
        sampling: SamplingParams | None = None,
    ) -> list[str]:
        """See `EngineClient`; a round trip for each child, all at the first one's token."""
        if n < 1:
            raise InvalidRequest(f"n must be a positive integer, not {n}.", param="n")
        children: list[str] = []
        try:
            for _ in range(n):
                child = new_request_id()
                body = fork_body(request_id, child=child, at=at, sampling=sampling)
                seed = sampling.seed if sampling else None
                at = self._connection.call(self._fork(child, body, seed=seed))
                children.append(child)
        except PravahaError:
            for child in children:
                self.cancel(child)
            raise
        return children

    def price(self, token_ids: Sequence[int]) -> "Future[ForkPrice]":
        """See `EngineClient`; never waits."""

        async def ask() -> ForkPrice:
            body = self._connection.with_model({"tokens": list(token_ids)})
            return fork_price(await self._connection.post("/price", body))

        future = self._connection.begin(ask())
        future.add_done_callback(lambda _: self._wake())
        return future

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """See `EngineClient`; one round trip."""
        scheduling.validate()
        self._post("/scheduling", self._connection.with_model(asdict(scheduling)))

    def models(self) -> Sequence[AvailableModel]:
        """See `EngineClient`; one round trip, during which the server reads the models' headers."""
        work = self._connection.get("/installed_models", within_s=READ_TIMEOUT_S)
        models = available_models(self._connection.call(work, wait_s=READ_TIMEOUT_S))
        chosen = self._connection.model
        if chosen is None:
            return models
        return [replace(one, loaded=one.name == chosen) for one in models]

    def load_model(self, name: str, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        """See `EngineClient`; two round trips.

        A server of several models loads it beside the others, and this client uses it from then on.
        """
        self._change_model(name, "load", drain_s)

    def unload_model(self, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        """See `EngineClient`; two round trips."""
        self._connection.call(self._poller.refresh_snapshot())
        model = self._poller.model
        if model is None:
            raise EngineUnavailable(f"The server at {self._connection.url} has no model loaded.")
        self._change_model(model.name, "unload", drain_s)

    def served_models(self, *, wait_s: float = ROUND_TRIP_S) -> list[str]:
        """The names of the server's models for chats, the first one first; one round trip.

        Args:
            wait_s: how long the server may take.

        Raises:
            EngineUnavailable: it does not answer.
        """
        listed = self._connection.call(self._connection.get("/v1/models"), wait_s=wait_s)
        try:
            return [one["id"] for one in listed["data"] if "max_model_len" in one]
        except (KeyError, TypeError) as error:
            raise self._connection.format_error() from error

    def begin_change(self, name: str, change: str) -> "Future[Any]":
        """Ask a server of several models to `load`, `unload` or `reload` one; done once it has begun.

        The future fails as `load_model`, and may wait for a model that is in use to become idle.
        """
        body = {} if change == "reload" else {"drain_seconds": MAX_CHANGE_DRAIN_S}
        work = self._connection.post(_change_path(name, change), body, within_s=MAX_CHANGE_DRAIN_S)
        future = self._connection.begin(work)
        future.add_done_callback(lambda _: self._wake())
        return future

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """See `EngineClient`; one round trip, which lasts as long as the embedding."""
        body = {"model": MINILM.name, "input": list(texts), "encoding_format": "base64"}
        work = self._connection.post("/v1/embeddings", body, within_s=READ_TIMEOUT_S)
        return embeddings(self._connection.call(work, wait_s=READ_TIMEOUT_S))

    def decide(
        self,
        text: str,
        questions: Iterable[DecisionQuestion],
        *,
        calibrate: bool = False,
        margin: float = MARGIN,
        min_label_mass: float = MIN_LABEL_MASS,
    ) -> Decisions:
        """See `AsyncPravahaEngine.decide`; one round trip, which lasts as long as the rows.

        Raises:
            EngineUnavailable: the server has no model or does not answer.
        """
        rules, asked = DecisionRules(calibrate, margin, min_label_mass), tuple(questions)
        model = self.snapshot().model
        if model is None:
            raise EngineUnavailable("No model is loaded.")
        body = decision_body(model.name, text, asked, rules)
        work = self._connection.post("/v1/decisions", body, within_s=_DECISIONS_S)
        return decisions(self._connection.call(work, wait_s=_DECISIONS_S), asked, rules)

    def snapshot(self) -> EngineSnapshot:
        """See `EngineClient` and `EnginePoller.snapshot`; never waits."""
        return self._poller.snapshot()

    def blocks(self, since: int) -> BlockMap | None:
        """See `EngineClient`; as of the last poll, never waits."""
        return self._poller.blocks.since(since)

    def request_table(self) -> tuple[RequestStatus, ...]:
        """See `EngineClient`; the requests of the last poll, never waits."""
        return self._poller.requests.read()

    def block(self, block: int) -> BlockDetail | None:
        """See `EngineClient`; the last answer, never waits."""

        async def ask() -> BlockDetail:
            data = await self._connection.get(self._connection.of_model(f"/blocks/{block}"))
            return block_detail(data, shift=self._poller.shift)

        return self._lookups.get(("block", block), ask)

    def prefix_tree(self) -> PrefixTree | None:
        """See `EngineClient`; the last answer, never waits."""

        async def ask() -> PrefixTree:
            return prefix_tree(
                await self._connection.get(self._connection.of_model("/prefix_tree"))
            )

        return self._lookups.get("prefix_tree", ask)

    def residency(self, token_ids: Sequence[int]) -> Residency | None:
        """See `EngineClient`; the last answer, never waits."""
        tokens = tuple(token_ids)

        async def ask() -> Residency:
            body = self._connection.with_model({"tokens": list(tokens)})
            return residency(await self._connection.post("/residency", body))

        return self._lookups.get(("residency", tokens), ask)

    def sessions(self) -> list[dict[str, Any]]:
        """The figures of the server's sessions, as its API has them; the last answer, never waits."""

        async def ask() -> list[dict[str, Any]]:
            listed = await self._connection.get("/v1/sessions")
            return [one for one in listed.get("data", ()) if isinstance(one, dict)]

        return self._lookups.get("sessions", ask) or []

    def pin(self, token_ids: Sequence[int]) -> str:
        """See `EngineClient`; returns before the server has answered."""
        pin_id = new_pin_id()
        body = {"tokens": list(token_ids), "pin_id": pin_id}
        self._lookups.send("/pin", self._connection.with_model(body))
        return pin_id

    def unpin(self, pin_id: str) -> None:
        """See `EngineClient`; returns before the server has answered."""
        self._lookups.send("/unpin", {"pin_id": pin_id})

    def recent_steps(self, since: int) -> tuple[StepEntry, ...]:
        """See `EngineClient`; as of the last poll, never waits."""
        return self._poller.steps.since(since)

    def planned_step(self) -> PlannedStep | None:
        """See `EngineClient`; as of the last poll, never waits."""
        return self._poller.steps.plan()

    def events(self, since: int) -> EventBatch:
        """See `EngineClient`; the events of the last poll, never waits."""
        return self._poller.events.since(since)

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """See `EngineClient`; no round trip."""
        return self._tokenizer.encode(text, special=special)

    def control_tokens(self) -> ControlTokens:
        """See `EngineClient`; no round trip."""
        return self._tokenizer.control_tokens

    def bos_id(self) -> int | None:
        """See `EngineClient`; no round trip."""
        return self._tokenizer.bos_id if self._tokenizer.add_bos else None

    def detokenize(self, token_ids: Sequence[int], *, skip_special: bool = True) -> str:
        """See `EngineClient`; no round trip."""
        return self._tokenizer.decode(token_ids, skip_special=skip_special)

    def token_texts(self, token_ids: Sequence[int]) -> list[str]:
        """See `EngineClient`; no round trip."""
        return self._tokenizer.token_texts(token_ids)

    def render_chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """See `EngineClient`; no round trip."""
        return self._tokenizer.render_chat(
            messages, add_generation_prompt=add_generation_prompt, tools=tools, variables=variables
        )

    def reasoning_markers(self) -> ReasoningMarkers | None:
        """See `EngineClient`; no round trip."""
        return self._tokenizer.reasoning

    def controls_reasoning(self) -> bool:
        """Never: completions of token ids have no such field."""
        return False

    def end_reasoning(self, request_id: str) -> None:
        """Refused: completions of token ids, which this client sends, cannot be told."""
        raise InvalidRequest(
            "The thinking of an attached server's answer cannot be ended: esc stops the answer."
        )

    def tool_template(self) -> str:
        """See `EngineClient`; no round trip."""
        return self._tokenizer.tool_template

    def place_images(
        self, prompt_ids: Sequence[int], images: Sequence[Image]
    ) -> tuple[tuple[int, ...], tuple[PlacedImage, ...]]:
        """See `EngineClient`; refused if there are images: how many tokens one takes, the server knows."""
        if images:
            raise InvalidRequest(
                "Images cannot be sent to an attached server: load the model in this process.",
                param="images",
            )
        return tuple(prompt_ids), ()

    def tokenizer_fingerprint(self) -> str:
        """See `EngineClient`; no round trip."""
        return self._tokenizer.fingerprint

    def on_wake(self, callback: Callable[[], None]) -> None:
        """See `EngineClient`; the callback runs on the connection's thread."""
        self._wake_callbacks.append(callback)

    def yield_core(self) -> AbstractContextManager[None]:
        """Does nothing: the engine runs in another process."""
        return nullcontext()

    def close(self) -> None:
        """Cancel running requests and end the thread. The server keeps running."""
        self._connection.close()

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._connection.call(self._connection.post(path, body))

    def _change_model(self, name: str, change: str, drain_s: float) -> None:
        body = {"drain_seconds": drain_s}
        work = self._connection.post(_change_path(name, change), body, within_s=READ_TIMEOUT_S)
        answer = self._connection.call(work, wait_s=READ_TIMEOUT_S)
        if isinstance(answer, dict) and answer.get("beside_others"):
            self._connection.call(self._poller.choose(name), wait_s=READ_TIMEOUT_S)
        else:
            self._connection.call(self._poller.refresh_snapshot())

    async def _submit(self, request: Request) -> None:
        if self._poller.model is None:
            await self._poller.refresh_snapshot()
        model = self._poller.model
        if model is None:
            raise EngineUnavailable(
                f"The server at {self._connection.url} is still loading its model."
            )
        try:
            await self._streams.open(
                request.request_id,
                "/v1/completions",
                completion_body(request, model.name),
                seed=request.sampling.seed,
                prompt_alternatives=request.sampling.prompt_logprobs or 0,
            )
        except ModelNotFound as error:
            # Another client changed the model; the prompt's token ids are those of the old one.
            await self._poller.refresh_snapshot()
            raise EngineUnavailable(
                f"The server no longer has the model {model.name}: it was changed. Send the "
                "message again."
            ) from error

    async def _fork(self, child: str, body: dict[str, Any], *, seed: int | None) -> int:
        """Fork one child; the number of the parent's tokens that it shares, as the server reports."""
        headers = await self._streams.open(child, "/fork", body, seed=seed)
        try:
            return int(headers[FORKED_AT])
        except (KeyError, ValueError) as error:
            raise self._connection.format_error() from error

    @property
    def _tokenizer(self) -> Tokenizer:
        tokenizer = self._poller.tokenizer.current
        if tokenizer is None:
            reason = self._poller.snapshot().last_error
            raise EngineUnavailable(
                reason or f"The server at {self._connection.url} is still loading its model."
            )
        return tokenizer

    def _wake(self) -> None:
        for callback in self._wake_callbacks:
            callback()


def _change_path(name: str, change: str) -> str:
    return f"/v1/models/{quote(name, safe='')}/{change}"
