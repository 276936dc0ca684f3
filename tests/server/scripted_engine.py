"""An engine with scripted results: refusals, failures and pauses that a toy model does not produce."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from engine.api.request import FinishReason, Request, RequestOutput, Timings, TokenBatch
from engine.api.snapshot import BlockCounts, EngineSnapshot, EngineState, ModelInfo
from engine.decisions.calibration import Calibration
from tests.server.toy_tokenizer import VOCAB_SIZE, byte_tokenizer

INFO = ModelInfo("toy", "toy", 1, "F32", "f32", 512, VOCAB_SIZE, 4, "scripted", "none", 1)


def words(*texts: str, finish: FinishReason = FinishReason.STOP) -> Callable[[Request], Any]:
    """A script: one batch for each text, the last one with the finish reason."""

    def script(request: Request) -> list[TokenBatch]:
        return [
            batch(request, text, finish if position == len(texts) - 1 else None)
            for position, text in enumerate(texts)
        ]

    return script


def batch(
    request: Request, text: str, finish: FinishReason | None = None, error: str | None = None
) -> TokenBatch:
    ids = tuple(text.encode())
    return TokenBatch(
        request.request_id, ids, text, Timings(0.0, 0.0, 0.0, 0.0), seed=7,
        logprobs=(-0.5,) * len(ids), top_logprobs=((),) * len(ids),
        token_id_logprobs=((-0.5,) * len(request.sampling.logprob_token_ids),) * len(ids),
        finish_reason=finish, error=error,
    )  # fmt: skip


class ScriptedHandle:
    """Yields its script, then waits forever unless the script ended with a finish."""

    def __init__(self, request: Request, batches: Iterable[TokenBatch], aborted: Any) -> None:
        self.request = request
        self._batches = list(batches)
        self._aborted = aborted
        self.finished = False

    @property
    def request_id(self) -> str:
        return self.request.request_id

    def abort(self) -> None:
        if not self.finished:
            self._aborted(self.request.request_id)

    async def __aiter__(self) -> Any:
        for one in self._batches:
            self.finished = one.finish_reason is not None
            yield one
        if not self.finished:
            await asyncio.Event().wait()

    async def result(self) -> RequestOutput:
        batches = [one async for one in self]
        return RequestOutput(
            self.request.request_id,
            len(self.request.prompt_ids),
            tuple(i for one in batches for i in one.token_ids),
            "".join(one.text for one in batches),
            batches[-1].finish_reason or FinishReason.ERROR,
            batches[-1].timings,
            seed=batches[-1].seed,
            logprobs=tuple(value for one in batches for value in one.logprobs),
            top_logprobs=tuple(row for one in batches for row in one.top_logprobs),
            drafted=tuple(flag for one in batches for flag in one.drafted),
            token_id_logprobs=tuple(row for one in batches for row in one.token_id_logprobs),
            cached_tokens=max(one.cached_tokens for one in batches),
            error=batches[-1].error,
            stop_string=batches[-1].stop_string,
        )


class ScriptedEngine:
    def __init__(self, script: Callable[[Request], Any], *, template: str | None = None) -> None:
        self.script = script
        self.config = SimpleNamespace(name="toy")
        self.calibration = Calibration()
        self.embedder = SimpleNamespace(name="minilm", installed=False)
        self.tokenizer = byte_tokenizer(template=template)
        self.metrics = SimpleNamespace(render=lambda: b"")
        self.requests: list[Request] = []
        self.aborted: list[str] = []
        self.was_aborted = threading.Event()
        self.submitted = threading.Semaphore(0)
        self.state = EngineState.READY
        self.running = 0
        self.info = INFO
        self.time = time.monotonic()

    def session_waits(self, session: str, tool: str) -> None:
        """Nothing is kept for sessions."""

    def submit_all(self, requests: list[Request]) -> list[ScriptedHandle]:
        scripts = [self.script(request) for request in requests]
        for batches in scripts:
            if isinstance(batches, Exception):
                raise batches
        self.requests += requests
        self.submitted.release(len(requests))
        return [
            ScriptedHandle(request, batches, self._on_abort)
            for request, batches in zip(requests, scripts, strict=True)
        ]

    def build_grammar(self, grammar: Any) -> Future[Any]:
        built: Future[Any] = Future()
        built.set_result(SimpleNamespace(not_enforced=()))
        return built

    def _on_abort(self, request_id: str) -> None:
        self.aborted.append(request_id)
        self.was_aborted.set()

    def now(self) -> float:
        return time.monotonic()

    def snapshot(self) -> EngineSnapshot:
        return EngineSnapshot(
            1, self.time, self.state, self.info, running=self.running, blocks=BlockCounts(total=4)
        )

    def request_table(self) -> tuple[()]:
        return ()

    def blocks(self, since: int) -> None:
        return None
