"""`GrammarCompiler`: builds grammars off the engine's thread, each once.

A build is checked in a process of its own (`checker`), then made in a thread of ours, without the
GIL but for the first one of a model, which reads the vocabulary. Results, refusals included, are
kept under the grammar itself, the least recently used one given up first.
"""

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.api.errors import EngineUnavailable, QueueFull
from engine.api.grammar import Grammar
from engine.grammar.checker import TOO_COSTLY, Checker
from engine.grammar.limits import BUILDERS, MAX_CACHED, MAX_PENDING, parser_limits
from engine.grammar.matcher import Matcher, mask_words
from engine.grammar.source import check_shape, library_text, one_sentence, refusal
from engine.grammar.vocabulary import Vocabulary, library_tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer

_NOTHING = ("NoExtension", "NoExtensionBias")


@dataclass(frozen=True, slots=True)
class CompiledGrammar:
    """A grammar that can be followed. Shared by every request that asks for it.

    Attributes:
        grammar: what was asked for.
        start: a matcher before the first token, which nobody advances.
    """

    grammar: Grammar
    start: Matcher

    def matcher(self) -> Matcher:
        """A matcher for one answer. Costs about 20 µs."""
        return self.start.copy()


class GrammarCompiler:
    """Compiles for one model. Any thread."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        vocab_size: int,
        *,
        builders: int = BUILDERS,
        max_cached: int = MAX_CACHED,
        max_pending: int = MAX_PENDING,
        checker: type[Checker] = Checker,
    ) -> None:
        """Compile for masks of `vocab_size` bits, the model's logits."""
        self._vocabulary, self._vocab_size = vocabulary, vocab_size
        self._max_cached, self._max_pending = max_cached, max_pending
        self._cache: OrderedDict[Grammar, Future[CompiledGrammar]] = OrderedDict()
        self._pending = 0
        self._closed = False
        self._lock = threading.Lock()  # guards the three above
        self._tokenizer: LLTokenizer | None = None
        self._reading = threading.Lock()  # guards the one above
        self._pool = ThreadPoolExecutor(builders, "pravaha-grammar")
        self._checkers = [checker() for _ in range(builders)]
        self._idle = list(self._checkers)  # one for each thread of the pool

    def build(self, grammar: Grammar) -> "Future[CompiledGrammar]":
        """The compiled grammar, at once if it was built before. Never blocks for a build.

        The future raises `InvalidRequest` where the grammar is refused.

        Raises:
            InvalidRequest: it has no sound shape.
            QueueFull: too many builds are pending.
            EngineUnavailable: closed.
        """
        with self._lock:
            known = self._cache.get(grammar)
            if known is not None:
                self._cache.move_to_end(grammar)
                return known
        check_shape(grammar)
        with self._lock:
            if self._closed:
                raise EngineUnavailable("The engine has stopped.")
            known = self._cache.get(grammar)
            if known is not None:
                return known
            if self._pending >= self._max_pending:
                raise QueueFull(f"{self._pending} grammars are being built; try again later.")
            self._pending += 1
            future = self._pool.submit(self._build, grammar)
            self._cache[grammar] = future
        future.add_done_callback(lambda _: self._built())
        return future

    def close(self) -> None:
        """End the builds and their processes; what was compiled stays usable. Idempotent."""
        with self._lock:
            self._closed = True
        for checker in self._checkers:
            checker.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _built(self) -> None:
        with self._lock:
            self._pending -= 1
            for grammar, future in list(self._cache.items()):
                if len(self._cache) <= self._max_cached:
                    break
                if future.done():
                    del self._cache[grammar]

    def _build(self, grammar: Grammar) -> CompiledGrammar:
        from llguidance import LLMatcher

        text = library_text(grammar)
        checker = self._idle.pop()
        try:
            reason = checker.check(text)
        finally:
            self._idle.append(checker)
        if reason:
            raise refusal(grammar, reason if reason == TOO_COSTLY else _readable(reason))
        library = LLMatcher(self._library_tokenizer(), text, limits=parser_limits(), log_level=0)
        if not library.is_error():
            library.compute_bitmask()  # the first mask is the costly one; copies start warm
        if library.is_error():
            raise refusal(grammar, _readable(library.get_error()))
        words = mask_words(self._vocab_size)
        return CompiledGrammar(grammar, Matcher(library, mask_words=words))

    def _library_tokenizer(self) -> "LLTokenizer":
        with self._reading:
            if self._tokenizer is None:
                self._tokenizer = library_tokenizer(self._vocabulary, self._vocab_size)
            return self._tokenizer


def _readable(error: str) -> str:
    reason = one_sentence(error)
    return "no text satisfies it" if reason in _NOTHING else reason
