"""`BackgroundSubmitter`: submits requests on one thread, for clients whose `submit` waits for a network.

Prompts are built by the session's thread; this one gets immutable requests, and its results are collected
with `finished`. The order of submissions is kept.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from engine.api.request import Request
from engine.clients.engine_client import EngineClient
from engine.conversations.answer import Answer
from engine.conversations.submission import PreparedAnswers, Submitter


@dataclass(frozen=True, slots=True)
class PendingSubmission:
    """Answers that are being submitted together; the future has the ids of their requests."""

    answers: tuple[Answer, ...]
    prepared: PreparedAnswers
    future: "Future[tuple[str, ...]]"


class BackgroundSubmitter:
    """Submits on a thread. Its methods are called by the session's thread."""

    def __init__(self, submitter: Submitter) -> None:
        self._submitter = submitter
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pravaha-submit")
        self._pending: list[PendingSubmission] = []

    def begin(self, answers: tuple[Answer, ...], prepared: PreparedAnswers) -> None:
        """Submit answers to the same nodes."""
        future = self._thread.submit(self._submitter.submit, prepared)
        self._pending.append(PendingSubmission(answers, prepared, future))

    def submit(self, request: Request, client: EngineClient) -> "Future[str]":
        """Submit a request that belongs to no answer."""
        return self._thread.submit(client.submit, request)

    def holds(self, answer: Answer) -> bool:
        """Whether an answer is being submitted."""
        return self._find(answer) is not None

    def withdraw(self, answer: Answer) -> None:
        """Cancel an answer's request as soon as it is submitted."""
        pending = self._find(answer)
        if pending is not None:
            index = pending.answers.index(answer)
            client = pending.prepared.client
            pending.future.add_done_callback(partial(self._abandon, index, client))

    def finished(self) -> Iterator[PendingSubmission]:
        """The submissions that finished since the last call, with success or not."""
        done = [pending for pending in self._pending if pending.future.done()]
        self._pending = [pending for pending in self._pending if pending not in done]
        yield from done

    @property
    def busy(self) -> bool:
        """Whether a submission has not been returned by `finished`."""
        return bool(self._pending)

    def close(self) -> None:
        """Forget what was not begun; a submission in progress ends with the client's connection."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _find(self, answer: Answer) -> PendingSubmission | None:
        return next((one for one in self._pending if answer in one.answers), None)

    def _abandon(self, index: int, client: EngineClient, future: "Future[tuple[str, ...]]") -> None:
        if not future.cancelled() and future.exception() is None:
            self._submitter.abandon(future.result()[index], client)
