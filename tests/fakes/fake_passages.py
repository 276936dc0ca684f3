"""A `PassageSource` whose searches and checks a test finishes."""

from collections.abc import Callable, Sequence
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
    anyway: bool = False
    future: "Future[FoundPassages]" = field(default_factory=Future)

    def finish(self, *texts: str) -> None:
        """Let it find passages with these texts."""
        self.future.set_result(found(*texts))


class FakeCheck:
    """Shows every piece when it arrives, and at the end nothing more.

    Attributes:
        fed: the pieces.
        complete: whether `finish` was called.
        ended: see `CitationCheck`; a test sets it.
        held: whether pieces are kept back until the test calls `show`, and the end until it calls `end`.
    """

    def __init__(
        self, result: Callable[[str], CheckedAnswer | None] | None = None, *, held: bool = False
    ) -> None:
        self.fed: list[str] = []
        self.complete = self.done = self.ended = False
        self.held = held
        self.result: CheckedAnswer | None = None
        self._result = result or (lambda text: CheckedAnswer(text, "[]"))
        self._shown = ""

    def show(self, text: str) -> None:
        self._shown += text

    def end(self) -> None:
        self.done, self.result = True, self._result("".join(self.fed))

    def feed(self, piece: str) -> None:
        self.fed.append(piece)
        if not self.held:
            self.show(piece)

    def finish(self) -> None:
        self.complete = True
        if not self.held:
            self.end()

    def take(self) -> str:
        shown, self._shown = self._shown, ""
        return shown

    def wait(self, seconds: float) -> None:
        self.end()


class FakePassages:
    """Records what a session asks for.

    Attributes:
        searches: all of them, in order.
        checks: the check of each answer, and what it was given.
        next_check: what the next answer is checked by.
    """

    def __init__(self) -> None:
        self.searches: list[Search] = []
        self.checks: list[tuple[FakeCheck, FoundPassages, str]] = []
        self.next_check: FakeCheck | None = None

    def find(
        self,
        names: Sequence[str],
        question: str,
        *,
        earlier: Sequence[str],
        model,
        room: int | None,
        anyway: bool = False,
    ) -> "Future[FoundPassages]":
        self.searches.append(Search(tuple(names), question, tuple(earlier), room, anyway))
        return self.searches[-1].future

    def grammar(self, found: FoundPassages) -> Grammar | None:
        return Grammar.regex(f"cites up to {found.count}")

    def begin_check(
        self, found: FoundPassages, question: str, *, earlier: Sequence[str], model
    ) -> FakeCheck:
        check, self.next_check = self.next_check or FakeCheck(), None
        self.checks.append((check, found, question))
        return check

    def question(self, found: FoundPassages, text: str) -> str:
        return text.removeprefix("@docs ")

    def contexts(self, given: Sequence[FoundPassages]) -> list[str]:
        """Without the texts that were given before."""
        seen, contexts = set(), []
        for one in given:
            lines = [line for line in one.context.split("\n") if not line or line not in seen]
            seen.update(lines)
            contexts.append("\n".join(lines))
        return contexts
