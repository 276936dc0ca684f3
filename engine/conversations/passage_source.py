"""`PassageSource`: where a session finds the passages that a message is answered from.

The collections that are attached to a branch are names; what they are and how they are searched is the
source's. `app.runtime.source_library` implements it over `engine.retrieval`, which is above this package.

A message and its passages belong together: the passages are stored with the message when they are found, so
that later prompts of the branch begin with the same tokens, and a restart shows what the model has read.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from engine.api.grammar import Grammar
from engine.api.snapshot import ModelInfo


@dataclass(frozen=True, slots=True)
class FoundPassages:
    """What was found for one message.

    Attributes:
        context: the text right before the message in the prompt, with the separator from it; marks the
            passages as untrusted.
        passages: JSON of the passages, which the source wrote and reads again.
        count: number of passages. An answer may cite [1] to [count].
    """

    context: str
    passages: str
    count: int


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer after the check of its citations.

    Attributes:
        text: the answer as it is shown: citations without support are marked, missing ones are added.
        citations: JSON of what was found, which the source wrote and front ends read.
    """

    text: str
    citations: str


class CitationCheck(Protocol):
    """The check of one answer while it is generated. Only `wait` waits; the source wakes the front end.

    The text that `take` returns, joined, is that of `result`, unless the check fails.
    """

    @property
    def ended(self) -> bool:
        """Whether nothing more is shown, so that the rest is not worth generating."""
        ...

    @property
    def done(self) -> bool:
        """Whether everything was checked after `finish`, or the check failed."""
        ...

    @property
    def result(self) -> CheckedAnswer | None:
        """The checked answer once it is `done`; None if the check failed."""
        ...

    def feed(self, piece: str) -> None:
        """Take a piece of what is generated."""
        ...

    def finish(self) -> None:
        """Take no more pieces."""
        ...

    def take(self) -> str:
        """The text that can be shown since the last call."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait until it is `done`, at most so long; the only method that waits."""
        ...


class PassageSource(Protocol):
    """Called by the session's thread. No method waits: futures are completed by threads of the source.

    After a future is done, the source wakes the front end, which calls `TreeSession.pump`.
    """

    def find(
        self,
        names: Sequence[str],
        question: str,
        *,
        earlier: Sequence[str],
        model: ModelInfo | None,
        room: int | None,
        anyway: bool = False,
    ) -> "Future[FoundPassages]":
        """Find passages for a message.

        Args:
            names: the attached collections, at least one.
            question: the message.
            earlier: the messages of the user before it on the branch, oldest first.
            model: what answers; None while it is being loaded.
            room: most tokens that the passages should have in the prompt; None if that is not known.
            anyway: whether the message is answered also if the passages do not seem to answer it.

        Returns:
            A future. It fails with a `PravahaError` of one sentence: a collection does not exist any more,
            or the embedding model is not installed.
        """
        ...

    def grammar(self, found: FoundPassages) -> Grammar | None:
        """The language of an answer to these passages, which cites no others; None for any text."""
        ...

    def begin_check(
        self,
        found: FoundPassages,
        question: str,
        *,
        earlier: Sequence[str],
        model: ModelInfo | None,
    ) -> CitationCheck:
        """Begin to check an answer to a message that passages were found for; arguments as in `find`."""
        ...

    def question(self, found: FoundPassages, text: str) -> str:
        """A message that passages were found for as the model reads it: without the names of collections."""
        ...

    def contexts(self, given: Sequence[FoundPassages]) -> Sequence[str]:
        """The texts before the messages of one prompt: a passage that an earlier one has is not repeated.

        Args:
            given: the passages of its messages, in the order of the prompt.

        Returns:
            For each its `context`, or one that refers to the passages before.
        """
        ...
