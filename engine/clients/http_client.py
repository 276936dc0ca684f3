"""`HttpClient`: an engine in another process, driven over its HTTP API (`pravaha --attach URL`).

One background thread runs one event loop. Each request is one SSE stream whose reader fills the
request's mailbox; closing the stream is how a request is cancelled, which frees its blocks on the
server. Snapshot and blocks are polled only while someone keeps asking for them. When the server is
away the snapshot says so (`state` failed, `last_error` why), and polling goes on with back-off.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import httpx
import orjson

from engine.api.chat import ChatMessage
from engine.api.embeddings import Embeddings
from engine.api.errors import EngineUnavailable, InvalidRequest, PravahaError
from engine.api.fork_price import ForkPrice
from engine.api.request import (
    FinishReason,
    Request,
    SamplingParams,
    Timings,
    TokenBatch,
    new_request_id,
)
from engine.api.scheduling import Scheduling
from engine.api.snapshot import BlockMap, EngineSnapshot, EngineState
from engine.clients.http_wire import (
    FORKED_AT,
    WireError,
    block_map,
    completion_body,
    embeddings,
    engine_snapshot,
    fork_body,
    fork_price,
    refusal,
    token_batch,
)
from engine.models.demo import MINILM
from engine.text.control_tokens import ControlTokens

POLL_S = 0.2
WANTED_S = 2.0
"""How long after the last question polling goes on."""
BACK_OFF_S = (0.5, 1.0, 2.0, 4.0, 8.0)
ROUND_TRIP_S = 10.0
"""Longest that a call waits for the server; no call waits for the engine's step."""
SILENCE_S = 60.0
"""A stream this silent is dead: a live server sends comments four times as often."""

Result = TypeVar("Result")


@dataclass(slots=True)
class _Stream:
    """A request and what has come of it but was not drained. `batches` is guarded by `lock`."""

    request_id: str
    queued: float
    seed: int
    timings: Timings
    prompt_alternatives: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    batches: list[TokenBatch] = field(default_factory=list)
    reader: "asyncio.Task[None] | None" = None

    def put(self, batch: TokenBatch) -> bool:
        """Add a batch; True if the mailbox was empty."""
        with self.lock:
            self.batches.append(batch)
            return len(self.batches) == 1

    def take(self) -> list[TokenBatch]:
        """Everything, leaving nothing."""
        with self.lock:
            batches, self.batches = self.batches, []
        return batches


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
        self._url = url.rstrip("/").removesuffix("/v1")
        if not self._url.startswith(("http://", "https://")):
            raise InvalidRequest(f"{url!r} is no URL of a server: it must start with http://.")
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._clock = clock
        self._streams: dict[str, _Stream] = {}
        self._wake_callbacks: list[Callable[[], None]] = []
        self._snapshot = EngineSnapshot(
            step=0, time=clock(), state=EngineState.LOADING, loading_progress=0.0
        )
        self._fingerprint: str | None = None
        self._blocks: BlockMap | None = None
        self._epoch_base = 0
        self._snapshot_wanted = clock() + WANTED_S
        self._blocks_wanted = float("-inf")
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._asked = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="pravaha-http", daemon=True)
        self._thread.start()

    # -- EngineClient ------------------------------------------------------------------------

    def submit(self, request: Request) -> str:
        """See `EngineClient`; one round trip."""
        self._call(self._submit(request))
        return request.request_id

    def cancel(self, request_id: str) -> None:
        """See `EngineClient`."""
        stream = self._streams.get(request_id)
        if stream is not None and stream.reader is not None and not self._closed:
            self._loop.call_soon_threadsafe(stream.reader.cancel)

    def drain(self, request_id: str) -> TokenBatch | None:
        """See `EngineClient`."""
        stream = self._streams.get(request_id)
        batches = stream.take() if stream is not None else []
        if not batches:
            return None
        joined = batches[0] if len(batches) == 1 else _join(batches)
        if joined.finish_reason is not None:
            self._streams.pop(request_id, None)
        return joined

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
                at = self._call(self._fork(child, body, seed=sampling.seed if sampling else None))
                children.append(child)
        except PravahaError:
            for child in children:
                self.cancel(child)
            raise
        return children

    def price(self, token_ids: Sequence[int]) -> ForkPrice:
        """See `EngineClient`; one round trip."""
        return fork_price(self._call(self._post("/price", {"tokens": list(token_ids)})))

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """See `EngineClient`; one round trip."""
        scheduling.validate()
        self._call(self._post("/scheduling", asdict(scheduling)))

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """See `EngineClient`; one round trip, which lasts as long as the embedding."""
        body = {"model": MINILM.name, "input": list(texts), "encoding_format": "base64"}
        answer = self._call(self._post("/v1/embeddings", body), wait_s=SILENCE_S)
        return embeddings(answer)

    def snapshot(self) -> EngineSnapshot:
        """See `EngineClient`; at most `POLL_S` and a round trip old while asked for."""
        self._snapshot_wanted = self._clock() + WANTED_S
        self._ask()
        return self._snapshot

    def blocks(self, since: int) -> BlockMap | None:
        """See `EngineClient`; epochs go on growing when the server starts anew."""
        self._blocks_wanted = self._clock() + WANTED_S
        self._ask()
        blocks = self._blocks
        return blocks if blocks is not None and blocks.epoch > since else None

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """See `EngineClient`; one round trip."""
        body = {"prompt": text, "add_special_tokens": False, "parse_special": special}
        tokens: list[int] = self._call(self._post("/tokenize", body))["tokens"]
        return tokens

    def control_tokens(self) -> ControlTokens:
        """See `EngineClient`; one round trip."""
        return ControlTokens(self._call(self._exchange("GET", "/tokenizer_info"))["control_tokens"])

    def detokenize(self, token_ids: Sequence[int], *, skip_special: bool = True) -> str:
        """See `EngineClient`; one round trip."""
        body = {"tokens": list(token_ids), "skip_special_tokens": skip_special}
        return str(self._call(self._post("/detokenize", body))["prompt"])

    def render_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> str:
        """See `EngineClient`; one round trip."""
        body = {"messages": list(messages), "add_generation_prompt": add_generation_prompt}
        return str(self._call(self._post("/apply-template", body))["prompt"])

    def tokenizer_fingerprint(self) -> str:
        """See `EngineClient`; a round trip until the server has answered once.

        Raises:
            EngineUnavailable: the server is away, or still loading its model.
        """
        if self._fingerprint is None:
            self._call(self._refresh_snapshot())
        if self._fingerprint is None:
            raise EngineUnavailable(f"The server at {self._url} is still loading its model.")
        return self._fingerprint

    def on_wake(self, callback: Callable[[], None]) -> None:
        """See `EngineClient`; the callback runs on the client's thread."""
        self._wake_callbacks.append(callback)

    def lend_core(self) -> AbstractContextManager[None]:
        """Nothing: the engine is elsewhere."""
        return nullcontext()

    def close(self) -> None:
        """Cancel what runs and end the thread. The server goes on."""
        if self._closed:
            return
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    # -- the background thread -----------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._http = httpx.AsyncClient(
            base_url=self._url,
            headers=self._headers,
            timeout=httpx.Timeout(ROUND_TRIP_S, read=SILENCE_S),
            limits=httpx.Limits(max_connections=None),
            trust_env=False,  # a proxy between the screen and its engine would only add delay
        )
        polling = self._loop.create_task(self._poll())  # noqa: F841 - keeps the task alive
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._wind_up())
            self._loop.close()

    async def _wind_up(self) -> None:
        await asyncio.sleep(0)  # tasks made this very moment must begin before they can end
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._http.aclose()

    def _call(self, work: Coroutine[Any, Any, Result], *, wait_s: float = ROUND_TRIP_S) -> Result:
        """Run a coroutine on the background loop and wait for it.

        Raises:
            EngineUnavailable: no answer, or closed.
        """
        if self._closed:
            work.close()
            raise EngineUnavailable("This client is closed.")
        future: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(wait_s)
        except TimeoutError:
            future.cancel()
            raise EngineUnavailable(
                f"The server at {self._url} did not answer in {wait_s:.0f} seconds."
            ) from None

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        return await self._exchange("POST", path, content=orjson.dumps(body))

    async def _exchange(self, method: str, path: str, *, content: bytes | None = None) -> Any:
        """One request and its JSON answer; None for 204.

        Raises:
            PravahaError: the server's refusal, or that it is away.
        """
        headers = {"content-type": "application/json"} if content is not None else {}
        try:
            response = await self._http.request(method, path, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise self._away(error) from error
        return self._answer(response)

    def _answer(self, response: httpx.Response) -> Any:
        if response.status_code == 204:
            return None
        try:
            data = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            data = None
        if response.status_code != 200:
            raise refusal(response.status_code, data)
        if not isinstance(data, dict):
            raise WireError(f"What answers at {self._url} is not a Pravāha server.")
        return data

    def _away(self, error: Exception) -> EngineUnavailable:
        return EngineUnavailable(
            f"The server at {self._url} does not answer ({type(error).__name__})."
        )

    def _wake(self) -> None:
        for callback in self._wake_callbacks:
            callback()

    # -- requests ------------------------------------------------------------------------------

    async def _submit(self, request: Request) -> None:
        if self._snapshot.model is None:
            await self._refresh_snapshot()
        model = self._snapshot.model
        if model is None:
            raise EngineUnavailable(f"The server at {self._url} is still loading its model.")
        await self._open(
            request.request_id,
            "/v1/completions",
            completion_body(request, model.name),
            seed=request.sampling.seed,
            prompt_alternatives=request.sampling.prompt_logprobs or 0,
        )

    async def _fork(self, child: str, body: dict[str, Any], *, seed: int | None) -> int:
        """Fork one child; at which token is what the server says."""
        headers = await self._open(child, "/fork", body, seed=seed)
        try:
            return int(headers[FORKED_AT])
        except (KeyError, ValueError) as error:
            raise WireError(f"What answers at {self._url} is not a Pravāha server.") from error

    async def _open(
        self,
        request_id: str,
        path: str,
        body: dict[str, Any],
        *,
        seed: int | None,
        prompt_alternatives: int = 0,
    ) -> httpx.Headers:
        """Post a body and read the stream that answers it into a mailbox.

        Raises:
            PravahaError: the server's refusal, or that it is away.
        """
        stream = _Stream(
            request_id,
            queued=self._clock(),
            seed=seed or 0,
            timings=Timings(self._clock()),
            prompt_alternatives=prompt_alternatives,
        )
        call = self._http.build_request(
            "POST",
            path,
            content=orjson.dumps(body),
            headers={"content-type": "application/json"},
        )
        try:
            response = await self._http.send(call, stream=True)
        except httpx.HTTPError as error:
            raise self._away(error) from error
        if response.status_code != 200:
            await response.aread()
            self._answer(response)
        self._streams[request_id] = stream
        stream.reader = self._loop.create_task(self._read(response, stream))
        return response.headers

    async def _read(self, response: httpx.Response, stream: _Stream) -> None:
        """Fill the mailbox until the stream ends; whatever ends it becomes the final batch."""
        reason = FinishReason.ERROR
        sentence: str | None = "The server ended the stream too early."
        try:
            async for line in response.aiter_lines():
                if line.startswith("data: {") and self._take_event(line, stream):
                    return
        except asyncio.CancelledError:
            reason, sentence = FinishReason.ABORT, None
        except WireError as error:
            sentence = str(error)
        except httpx.HTTPError as error:
            sentence = f"The connection to the server broke ({type(error).__name__})."
        finally:
            # Closing before the end is what tells the server to stop.
            with suppress(httpx.HTTPError):
                await response.aclose()
        self._deliver(stream, _ending(stream, reason, sentence))

    def _take_event(self, line: str, stream: _Stream) -> bool:
        """Deliver one event; True if it was the last."""
        try:
            data = orjson.loads(line.removeprefix("data: "))
        except orjson.JSONDecodeError as error:
            raise WireError("The server's stream holds something else than JSON.") from error
        if "error" in data:
            sentence = str(refusal(500, data))
            self._deliver(stream, _ending(stream, FinishReason.ERROR, sentence))
            return True
        for choice in data.get("choices", ()):
            batch = token_batch(
                choice,
                request_id=stream.request_id,
                queued=stream.queued,
                prompt_alternatives=stream.prompt_alternatives,
            )
            stream.seed, stream.timings = batch.seed, batch.timings
            self._deliver(stream, batch)
            if batch.finish_reason is not None:
                return True
        return False

    def _deliver(self, stream: _Stream, batch: TokenBatch) -> None:
        if stream.put(batch):
            self._wake()

    # -- polling -------------------------------------------------------------------------------

    def _ask(self) -> None:
        if not self._asked.is_set() and not self._closed:
            self._loop.call_soon_threadsafe(self._asked.set)

    def _wanted(self) -> bool:
        return self._clock() <= max(self._snapshot_wanted, self._blocks_wanted)

    async def _poll(self) -> None:
        """Refresh what is wanted, every `POLL_S`; less and less often while the server is away."""
        failures = 0
        while True:
            if not self._wanted():
                self._asked.clear()
                if not self._wanted():  # again: a question may have come before the clearing
                    await self._asked.wait()
            try:
                await self._refresh_snapshot()
                if self._clock() <= self._blocks_wanted:
                    await self._refresh_blocks()
                failures = 0
                await asyncio.sleep(POLL_S)
            except PravahaError as error:
                self._report_away(error)
                await asyncio.sleep(BACK_OFF_S[min(failures, len(BACK_OFF_S) - 1)])
                failures += 1

    async def _refresh_snapshot(self) -> None:
        data = await self._exchange("GET", "/snapshot")
        if "snapshot" not in data:
            raise WireError(f"What answers at {self._url} is not a Pravāha server.")
        self._fingerprint = data.get("tokenizer_fingerprint")
        self._replace_snapshot(engine_snapshot(data["snapshot"], now=self._clock()))

    async def _refresh_blocks(self) -> None:
        known = self._blocks
        since = -1 if known is None else known.epoch - self._epoch_base
        data = await self._exchange("GET", f"/blocks?since={max(since, -1)}")
        if data is not None:
            data["epoch"] += self._epoch_base
            self._blocks = block_map(data)

    def _report_away(self, error: PravahaError) -> None:
        now = self._clock()
        if self._blocks is not None:
            # Another engine may answer next, counting from nought again.
            self._epoch_base = self._blocks.epoch + 1
        self._replace_snapshot(
            EngineSnapshot(
                step=self._snapshot.step,
                time=now,
                state=EngineState.FAILED,
                model=self._snapshot.model,
                last_error=f"{error} Trying again.",
                last_error_time=now,
            )
        )

    def _replace_snapshot(self, snapshot: EngineSnapshot) -> None:
        changed = snapshot.state is not self._snapshot.state
        self._snapshot = snapshot
        if changed:
            self._wake()


def _join(batches: Sequence[TokenBatch]) -> TokenBatch:
    """Several batches of one request as one."""
    last = batches[-1]
    return TokenBatch(
        request_id=last.request_id,
        token_ids=tuple(one for batch in batches for one in batch.token_ids),
        text="".join(batch.text for batch in batches),
        timings=last.timings,
        seed=last.seed,
        logprobs=tuple(one for batch in batches for one in batch.logprobs),
        top_logprobs=tuple(one for batch in batches for one in batch.top_logprobs),
        finish_reason=last.finish_reason,
        error=last.error,
        cached_tokens=last.cached_tokens,
        prompt_logprobs=batches[0].prompt_logprobs,
    )


def _ending(stream: _Stream, reason: FinishReason, error: str | None) -> TokenBatch:
    """The final batch of a stream that the server did not finish."""
    return TokenBatch(
        request_id=stream.request_id,
        token_ids=(),
        text="",
        timings=stream.timings,
        seed=stream.seed,
        finish_reason=reason,
        error=error,
    )
