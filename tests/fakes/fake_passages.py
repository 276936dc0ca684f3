"""A `PassageSource` whose searches and checks a test finishes."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from engine.api.grammar import Grammar
from engine.conversations.passage_source import CheckedAnswer, FoundPassages


def found(*texts: str) -> FoundPassages:
    """Passages with these texts, as a source would store them."""
    block = "".join(f"[{n}] {text}\n" for n, text in enumerate(texts, start=1))
    return FoundPassages(
        f"{block}\n", f"[{','.join(f'{chr(34)}{t}{chr(34)}' for t in texts)}]", len(texts)
    )


@dataclass
class Search:
    """A search that was begun."""

    names: tuple[str, ...]
    question: str
    earlier: tuple[str, ...]
    room: int | None
    future: "Future[FoundPassages]" = field(default_factory=Future)

    def finish(self, *texts: str) -> None:
        """Let it find passages with these texts."""
        self.future.set_result(found(*texts))


class FakePassages:
    """Records what a session asks for.

    Attributes:
        searches: all of them, in order.
        checks: (answer, passages, future) of each check.
    """

    def __init__(self) -> None:
        self.searches: list[Search] = []
        self.checks: list[tuple[str, FoundPassages, Future[CheckedAnswer]]] = []

    def find(
        self,
        names: Sequence[str],
        question: str,
        *,
        earlier: Sequence[str],
        model,
        room: int | None,
    ) -> "Future[FoundPassages]":
        self.searches.append(Search(tuple(names), question, tuple(earlier), room))
        return self.searches[-1].future

    def grammar(self, found: FoundPassages) -> Grammar | None:
        return Grammar.regex(f"cites up to {found.count}")

    def check(self, answer: str, found: FoundPassages) -> "Future[CheckedAnswer]":
        future: Future[CheckedAnswer] = Future()
        self.checks.append((answer, found, future))
        return future
