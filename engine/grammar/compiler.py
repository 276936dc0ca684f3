"""`GrammarCompiler`: builds grammars on a thread pool and caches the results.

A grammar is first built in a checking process (`checker`), then on a pool thread. The latter releases
the GIL, except in the first build of a model, which reads the vocabulary. The LRU cache is keyed by
the grammar and includes failed builds, so a source is parsed once and built once.
"""

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.api.errors import EngineUnavailable, QueueFull
from engine.api.grammar import Grammar
from engine.grammar.checker import TOO_COSTLY, Checker
from engine.grammar.limits import BUILDERS, MAX_CACHED, MAX_PENDING, parser_limits
from engine.grammar.matcher import Matcher, mask_words
from engine.grammar.source import grammar_error, library_text, one_sentence, parse_source
from engine.grammar.vocabulary import Vocabulary, library_tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer

_UNSATISFIABLE = ("NoExtension", "NoExtensionBias")


@dataclass(frozen=True, slots=True)
class CompiledGrammar:
    """A compiled grammar, shared by all requests that use it.

    Attributes:
        grammar: its source.
        start: a matcher in the initial state; never advanced, only copied.
    """

    grammar: Grammar
    start: Matcher

    def matcher(self) -> Matcher:
        """A matcher for one sequence, in the initial state. Costs about 20 µs."""
        return self.start.copy()


class GrammarCompiler:
    """Compiles grammars for one model. Thread-safe."""

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
        """Compile for token masks of `vocab_size` bits, one per logit.

        Args:
            vocabulary: the model's tokens.
            vocab_size: number of logits.
            builders: number of threads, each with a checking process.
            max_cached: capacity of the cache.
            max_pending: maximum number of builds in progress or queued.
            checker: makes a checker.
        """
        self._vocabulary, self._vocab_size = vocabulary, vocab_size
        self._max_cached, self._max_pending = max_cached, max_pending
        self._cache: OrderedDict[Grammar, Future[CompiledGrammar]] = OrderedDict()
        self._pending = 0
        self._closed = False
        self._lock = threading.Lock()  # guards the three above
        self._tokenizer: LLTokenizer | None = None
        self._tokenizer_lock = threading.Lock()  # guards the one above
        self._pool = ThreadPoolExecutor(builders, "pravaha-grammar")
        self._checkers = [checker() for _ in range(builders)]
        self._idle = list(self._checkers)  # one per pool thread

    def build(self, grammar: Grammar) -> "Future[CompiledGrammar]":
        """Return a future of the compiled grammar, from the cache if possible. Never blocks for a build.

        The future raises `InvalidRequest` if the grammar cannot be built.

        Raises:
            InvalidRequest: `parse_source` rejects the grammar.
            QueueFull: too many builds are pending.
            EngineUnavailable: the compiler is closed.
        """
        with self._lock:
            cached = self._cache.get(grammar)
            if cached is not None:
                self._cache.move_to_end(grammar)
                return cached
        parsed = parse_source(grammar)
        with self._lock:
            if self._closed:
                raise EngineUnavailable("The engine has stopped.")
            cached = self._cache.get(grammar)
            if cached is not None:
                return cached
            if self._pending >= self._max_pending:
                raise QueueFull(f"{self._pending} grammars are being built; try again later.")
            self._pending += 1
            future = self._pool.submit(self._build, grammar, parsed)
            self._cache[grammar] = future
        future.add_done_callback(lambda _: self._finish_build())
        return future

    def close(self) -> None:
        """End the builds and their processes; compiled grammars stay usable. Idempotent."""
        with self._lock:
            self._closed = True
        for checker in self._checkers:
            checker.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _finish_build(self) -> None:
        with self._lock:
            self._pending -= 1
            for grammar, future in list(self._cache.items()):
                if len(self._cache) <= self._max_cached:
                    break
                if future.done():
                    del self._cache[grammar]

    def _build(self, grammar: Grammar, parsed: Any) -> CompiledGrammar:
        from llguidance import LLMatcher

        text = library_text(grammar, parsed)
        checker = self._idle.pop()
        try:
            reason = checker.check(text)
        finally:
            self._idle.append(checker)
        if reason:
            raise grammar_error(grammar, reason if reason == TOO_COSTLY else _readable(reason))
        library = LLMatcher(self._library_tokenizer(), text, limits=parser_limits(), log_level=0)
        if not library.is_error():
            library.compute_bitmask()  # the first mask is the most expensive one; copies reuse it
        if library.is_error():
            raise grammar_error(grammar, _readable(library.get_error()))
        words = mask_words(self._vocab_size)
        return CompiledGrammar(grammar, Matcher(library, mask_words=words))

    def _library_tokenizer(self) -> "LLTokenizer":
        with self._tokenizer_lock:
            if self._tokenizer is None:
                self._tokenizer = library_tokenizer(self._vocabulary, self._vocab_size)
            return self._tokenizer


def _readable(error: str) -> str:
    reason = one_sentence(error)
    return "no text satisfies it" if reason in _UNSATISFIABLE else reason
