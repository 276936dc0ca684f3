"""Whether the terminal has taken what was written, so that no frame waits behind another one.

A frame is drawn only while at most `WINDOW_BYTES` are on their way. On a slow link the frames between are
never made: the next one shows everything that changed. What is on its way is known in two ways:

- bytes that the process could not write yet;
- bytes written after which the terminal has not answered a question. After a frame the terminal is asked
  whether it supports synchronized output, which it answers when it has read the frame. This counts the
  buffers of ssh, of multiplexers and of the kernel, which accept output long before it is shown.

A terminal that does not answer such questions is judged by the first number alone.

Methods may be called from any thread; none blocks.
"""

import threading
import time
from collections.abc import Callable

WINDOW_BYTES = 1024
"""Bytes on their way up to which a frame is drawn: the echo of a key, but not a scrolled answer."""
ANSWER_S = 10.0
"""Seconds after which an unanswered question counts as lost: the terminal is not asked again."""
HURRY_S = 1.0
"""Seconds after an action of the user during which frames are drawn as soon as possible."""


class OutputPace:
    """Counts the bytes on their way to the terminal.

    Attributes:
        answers: whether the terminal answers questions; set by its first answer.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._on_progress: Callable[[], None] = lambda: None
        self.answers = False
        self._queued = 0  # bytes handed to the writer, since the start
        self._written = 0  # bytes that left the process
        self._shown = 0  # bytes before the last answered question
        self._asked: tuple[int, float] | None = None  # bytes before the question, and when
        self._fastest_s = float("inf")
        self._rest_until = float("-inf")
        self._hurry_until = float("-inf")

    def on_progress(self, callback: Callable[[], None]) -> None:
        """Call `callback`, on any thread, when a frame can be drawn again or a question is due."""
        self._on_progress = callback

    @property
    def total(self) -> int:
        """Bytes handed to the writer since the start."""
        return self._queued

    @property
    def congested(self) -> bool:
        """Whether too much is on its way to draw a frame."""
        with self._lock:
            return self._is_congested()

    def _is_congested(self) -> bool:
        if self._queued - self._written > WINDOW_BYTES:
            return True
        if self._asked is not None and self._clock() - self._asked[1] > ANSWER_S:
            self._asked = None
            self.answers = False
        return self.answers and self._queued - self._shown > WINDOW_BYTES

    @property
    def resting(self) -> bool:
        """Whether figures and answers should not be drawn yet, to keep the link free for keys.

        A slow link is left idle for as long as the last frame took.
        """
        now = self._clock()
        return now < self._rest_until and now >= self._hurry_until

    def hurry(self) -> None:
        """Do not rest now: the user waits for the effect of a key."""
        self._hurry_until = self._clock() + HURRY_S

    def queued(self, size: int) -> None:
        """Count bytes handed to the writer."""
        with self._lock:
            self._queued += size

    def wrote(self, size: int) -> None:
        """Count bytes that left the process."""
        self._count(lambda: self._add_written(size))

    def _add_written(self, size: int) -> None:
        self._written += size

    def ask(self, size: int) -> bool:
        """Whether to ask now, with a question of `size` bytes: something was written, and none is open.

        To be called before the question is written: the answer may come at once.
        """
        with self._lock:
            if not self._question_is_due():
                return False
            self._asked = (self._queued + size, self._clock())
            return True

    def _question_is_due(self) -> bool:
        return self.answers and self._asked is None and self._queued > self._shown

    def answered(self) -> None:
        """The terminal answered, so that it has read what was written before the question."""
        self._count(self._note_answer)

    def _note_answer(self) -> None:
        self.answers = True
        if self._asked is None:
            # The answer to the question at the start: nothing before it is on its way.
            self._shown = self._queued
            return
        size, at = self._asked
        self._asked = None
        took = self._clock() - at
        # The fastest answer is the delay of the link, which says nothing about its rate.
        self._fastest_s = min(self._fastest_s, took)
        self._rest_until = self._clock() + took - self._fastest_s
        self._shown = size

    def _count(self, change: Callable[[], None]) -> None:
        with self._lock:
            before = self._is_congested()
            change()
            progress = (before and not self._is_congested()) or self._question_is_due()
        if progress:
            self._on_progress()
