"""`HttpClient`: an engine in another process, driven over its HTTP API (`pravaha --attach URL`).

A facade over three parts: `HttpConnection` (the background thread and its requests), `TokenStreams`
(an SSE stream and a mailbox for each request) and `EnginePoller` (snapshot and KV blocks).
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any

from engine.api.chat import ChatMessage
from engine.api.embeddings import Embeddings
from engine.api.errors import EngineUnavailable, InvalidRequest, PravahaError
from engine.api.fork_price import ForkPrice
from engine.api.request import Request, SamplingParams, TokenBatch, new_request_id
from engine.api.scheduling import Scheduling
from engine.api.snapshot import BlockMap, EngineSnapshot
from engine.clients.http_connection import READ_TIMEOUT_S, HttpConnection
from engine.clients.http_polling import EnginePoller
from engine.clients.http_streams import TokenStreams
from engine.clients.http_wire import (
    FORKED_AT,
    completion_body,
    embeddings,
    fork_body,
    fork_price,
)
from engine.models.demo import MINILM
from engine.text.control_tokens import ControlTokens


class HttpClient:
    """`EngineClient` over HTTP."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Join the server at `url` (with or without a trailing `/v1`); returns before it answers.

        Raises:
            InvalidRequest: the URL is not an http(s) one.
        """
        url = url.rstrip("/").removesuffix("/v1")
        if not url.startswith(("http://", "https://")):
            raise InvalidRequest(f"{url!r} is not the URL of a server: it must start with http://.")
        self._wake_callbacks: list[Callable[[], None]] = []
        self._connection = HttpConnection(url, api_key=api_key)
        self._streams = TokenStreams(self._connection, wake=self._wake, clock=clock)
        self._poller = EnginePoller(self._connection, wake=self._wake, clock=clock)
        self._connection.start(self._poller.run)

    def submit(self, request: Request) -> str:
        """See `EngineClient`; one round trip."""
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

    def price(self, token_ids: Sequence[int]) -> ForkPrice:
        """See `EngineClient`; one round trip."""
        return fork_price(self._post("/price", {"tokens": list(token_ids)}))

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """See `EngineClient`; one round trip."""
        scheduling.validate()
        self._post("/scheduling", asdict(scheduling))

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """See `EngineClient`; one round trip, which lasts as long as the embedding."""
        body = {"model": MINILM.name, "input": list(texts), "encoding_format": "base64"}
        work = self._connection.post("/v1/embeddings", body)
        return embeddings(self._connection.call(work, wait_s=READ_TIMEOUT_S))

    def snapshot(self) -> EngineSnapshot:
        """See `EngineClient` and `EnginePoller.snapshot`; never waits."""
        return self._poller.snapshot()

    def blocks(self, since: int) -> BlockMap | None:
        """See `EngineClient` and `EnginePoller.blocks`; never waits."""
        return self._poller.blocks(since)

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """See `EngineClient`; one round trip."""
        body = {"prompt": text, "add_special_tokens": False, "parse_special": special}
        tokens: list[int] = self._post("/tokenize", body)["tokens"]
        return tokens

    def control_tokens(self) -> ControlTokens:
        """See `EngineClient`; one round trip."""
        info = self._connection.call(self._connection.get("/tokenizer_info"))
        return ControlTokens(info["control_tokens"])

    def detokenize(self, token_ids: Sequence[int], *, skip_special: bool = True) -> str:
        """See `EngineClient`; one round trip."""
        body = {"tokens": list(token_ids), "skip_special_tokens": skip_special}
        return str(self._post("/detokenize", body)["prompt"])

    def render_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> str:
        """See `EngineClient`; one round trip."""
        body = {"messages": list(messages), "add_generation_prompt": add_generation_prompt}
        return str(self._post("/apply-template", body)["prompt"])

    def tokenizer_fingerprint(self) -> str:
        """See `EngineClient`; a round trip until the server has answered once.

        Raises:
            EngineUnavailable: the server does not answer, or still loads its model.
        """
        if self._poller.fingerprint is None:
            self._connection.call(self._poller.refresh_snapshot())
        if self._poller.fingerprint is None:
            raise self._still_loading()
        return self._poller.fingerprint

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

    async def _submit(self, request: Request) -> None:
        if self._poller.latest.model is None:
            await self._poller.refresh_snapshot()
        model = self._poller.latest.model
        if model is None:
            raise self._still_loading()
        await self._streams.open(
            request.request_id,
            "/v1/completions",
            completion_body(request, model.name),
            seed=request.sampling.seed,
            prompt_alternatives=request.sampling.prompt_logprobs or 0,
        )

    async def _fork(self, child: str, body: dict[str, Any], *, seed: int | None) -> int:
        """Fork one child; the number of the parent's tokens that it shares, as the server reports."""
        headers = await self._streams.open(child, "/fork", body, seed=seed)
        try:
            return int(headers[FORKED_AT])
        except (KeyError, ValueError) as error:
            raise self._connection.format_error() from error

    def _still_loading(self) -> EngineUnavailable:
        return EngineUnavailable(
            f"The server at {self._connection.url} is still loading its model."
        )

    def _wake(self) -> None:
        for callback in self._wake_callbacks:
            callback()
