"""`BackgroundSubmitter`: submits answers on one thread, for clients whose calls wait for a network.

The session stays on its own thread: it passes immutable nodes in and collects results with `finished`. The
order of submissions is kept.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from engine.api.errors import PravahaError
from engine.conversations.answer import Answer
from engine.conversations.conversation import Conversation
from engine.conversations.submission import Submission, Submitter


@dataclass(frozen=True, slots=True)
class PendingSubmission:
    """Answers that are being submitted together."""

    conversation: Conversation
    answers: tuple[Answer, ...]
    future: "Future[Submission]"


class BackgroundSubmitter:
    """Runs a `Submitter` on a thread. Its methods are called by the session's thread."""

    def __init__(self, submitter: Submitter) -> None:
        self._submitter = submitter
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pravaha-submit")
        self._pending: list[PendingSubmission] = []
        self._thread.submit(self._learn_template)

    def begin(self, conversation: Conversation, answers: tuple[Answer, ...]) -> None:
        """Submit answers to the same nodes."""
        first = answers[0]
        begun = () if first.beginning is None else first.beginning.token_ids
        work = partial(
            self._submitter.submit,
            first.prompt,
            first.sampling,
            begun=begun,
            count=len(answers),
            limit=first.limit,
        )
        future = self._thread.submit(work)
        self._pending.append(PendingSubmission(conversation, answers, future))
        self._thread.submit(self._learn_template)

    def holds(self, answer: Answer) -> bool:
        """Whether an answer is being submitted."""
        return self._find(answer) is not None

    def withdraw(self, answer: Answer) -> None:
        """Cancel an answer's request as soon as it is submitted."""
        pending = self._find(answer)
        if pending is not None:
            index = pending.answers.index(answer)
            pending.future.add_done_callback(partial(self._abandon, index))

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

    def _abandon(self, index: int, future: "Future[Submission]") -> None:
        if not future.cancelled() and future.exception() is None:
            self._submitter.abandon(future.result().request_ids[index])

    def _learn_template(self) -> None:
        """Find out whether the model takes a system prompt, before a new conversation needs it."""
        with suppress(PravahaError):
            self._submitter.builder.takes_system_prompt()
