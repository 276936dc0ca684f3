"""`RequestHandle`: the caller's interface to one request.

Reading costs the engine's thread nothing: the reader's thread copies tokens out of the request's row
and detokenizes them. A handle that is garbage-collected aborts its request.
"""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from engine.api.request import (
    FinishReason,
    PromptLogprobs,
    Request,
    RequestOutput,
    TokenBatch,
    TopLogprob,
)
from engine.batch.finish import Finish
from engine.batch.mailbox import Mailbox
from engine.batch.outputs import Outputs
from engine.runtime.wakeups import WakeHub
from engine.text.detokenizer import Detokenizer


class RequestHandle:
    """Reads the output of one request: by `drain`, `async for`, `await result()` or `wait_result`.

    `drain` may be called from any thread, but each batch is returned only once: use one reader per
    handle. As a context manager it aborts the request on exit if it is not finished.

    Attributes:
        request: the request.
        seed: the seed in effect.
    """

    def __init__(
        self,
        request: Request,
        mailbox: Mailbox,
        *,
        seed: int,
        detokenizer: Detokenizer | None,
        abort: Callable[[], None],
        hub: WakeHub,
    ) -> None:
        """Create a handle; `AsyncPravahaEngine.submit` does.

        Args:
            request: the request.
            mailbox: receives the output.
            seed: the seed in effect.
            detokenizer: turns ids into text; None if the engine's thread does, to find stop strings.
            abort: aborts the request; must be reentrant, because finalizers call it.
            hub: wakes coroutines.
        """
        self.request = request
        self.seed = seed
        self._mailbox = mailbox
        self._detokenizer = detokenizer
        self._abort = abort
        self._hub = hub
        self._lock = threading.Lock()
        self._read = 0  # output tokens returned so far
        self._text: list[str] = []
        self._begun = False
        self._delivered = False

    @property
    def request_id(self) -> str:
        """The request's id."""
        return self.request.request_id

    @property
    def finished(self) -> bool:
        """Whether the request finished; its output may not be drained yet."""
        return self._mailbox.finish is not None

    def has_new_output(self) -> bool:
        """Whether `drain` would probably return a batch. Never blocks."""
        return not self._delivered and self._mailbox.has_more_than(self._read)

    def drain(self) -> TokenBatch | None:
        """The new output, or None. Never blocks. The last batch has `finish_reason`."""
        with self._lock:
            if self._delivered:
                return None
            finish = self._mailbox.finish  # before the tokens: see `engine.batch.mailbox`
            outputs = self._mailbox.read(self._read)
            ids = outputs.ids.tolist()
            text = self._new_text(ids, finish)
            if finish is None and not ids and not text:
                return None
            self._read += len(ids)
            self._text.append(text)
            self._delivered = finish is not None
            prompt_logprobs = None if self._begun else self._prompt_logprobs()
            self._begun = True
            return self._batch(ids, text, outputs, finish, prompt_logprobs)

    def abort(self) -> None:
        """Abort the request at the next step boundary; output generated until then stays readable."""
        self._abort()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TokenBatch:
        waker = self._hub.waker()
        while not self._delivered:
            # Returns at once if there is new output. A drain without any would cost as much as one with it.
            await waker.wait(self, for_finish=False)
            batch = self.drain()
            if batch is not None:
                return batch
        raise StopAsyncIteration

    async def result(self) -> RequestOutput:
        """Wait for the finish and return the full output, including batches already drained."""
        if not self.finished:
            await self._hub.waker().wait(self, for_finish=True)
        return self._full_output()

    def wait_result(self, timeout: float | None = None) -> RequestOutput:
        """Like `result`, for threads without an event loop.

        Raises:
            TimeoutError: the request is not finished after `timeout` seconds.
        """
        if not self._mailbox.done.wait(timeout):
            raise TimeoutError(f"{self.request_id} was not complete after {timeout} s")
        return self._full_output()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.finished:
            self.abort()

    def __del__(self) -> None:
        # Nobody can read the output any more.
        mailbox = getattr(self, "_mailbox", None)
        if mailbox is not None and mailbox.finish is None:
            self._abort()

    def _new_text(self, ids: list[int], finish: Finish | None) -> str:
        if self._detokenizer is None:
            parts = self._mailbox.text
            return "".join([parts.popleft() for _ in range(len(parts))])
        text = self._detokenizer.feed(ids) if ids else ""
        return text if finish is None else text + self._detokenizer.flush()

    def _batch(
        self,
        ids: list[int],
        text: str,
        outputs: Outputs,
        finish: Finish | None,
        prompt_logprobs: PromptLogprobs | None,
    ) -> TokenBatch:
        return TokenBatch(
            request_id=self.request_id,
            token_ids=tuple(ids),
            text=text,
            timings=outputs.timings,
            seed=self.seed,
            logprobs=tuple(outputs.logprobs.tolist()),
            top_logprobs=self._top(outputs),
            token_id_logprobs=tuple(map(tuple, outputs.token_id_logprobs.tolist())),
            finish_reason=None if finish is None else finish.reason,
            error=None if finish is None else finish.error,
            cached_tokens=self._mailbox.cached_tokens,
            drafted=tuple(outputs.drafted.tolist()),
            prompt_logprobs=prompt_logprobs,
            stop_string=None if finish is None else finish.stop_string,
        )

    def _prompt_logprobs(self) -> PromptLogprobs | None:
        scores = self._mailbox.prompt_scores
        return None if scores is None else scores.result()

    def _top(self, outputs: Outputs) -> tuple[tuple[TopLogprob, ...], ...]:
        if self._mailbox.num_logprobs is None:
            return ()
        pairs = zip(outputs.top_ids.tolist(), outputs.top_logprobs.tolist(), strict=True)
        return tuple(tuple(map(TopLogprob, ids, logprobs)) for ids, logprobs in pairs)

    def _full_output(self) -> RequestOutput:
        self.drain()
        finish = self._mailbox.finish
        if finish is None:
            raise AssertionError(f"{self.request_id} was joined before its finish")
        outputs = self._mailbox.kept
        return RequestOutput(
            request_id=self.request_id,
            prompt_tokens=len(self.request.prompt_ids),
            token_ids=tuple(outputs.ids.tolist()),
            text="".join(self._text),
            finish_reason=FinishReason(finish.reason),
            timings=outputs.timings,
            seed=self.seed,
            logprobs=tuple(outputs.logprobs.tolist()),
            top_logprobs=self._top(outputs),
            token_id_logprobs=tuple(map(tuple, outputs.token_id_logprobs.tolist())),
            error=finish.error,
            cached_tokens=self._mailbox.cached_tokens,
            drafted=tuple(outputs.drafted.tolist()),
            prompt_logprobs=self._prompt_logprobs(),
            stop_string=finish.stop_string,
        )
