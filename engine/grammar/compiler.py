"""`GrammarCompiler`: builds grammars on a thread pool and caches the results.

A grammar is first built in a checking process (`checker`), then on a pool thread. The latter releases
the GIL, except in the first build of a model, which reads the vocabulary. `BuildQueue` has the order.
The LRU cache is keyed by the grammar and includes failed builds, so a source is parsed once and built
once. Each caller has a future of its own, whose cancellation says that it does not wait any more.
"""

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.api.errors import EngineUnavailable, QueueFull
from engine.api.grammar import Grammar
from engine.grammar.build_queue import Build, BuildQueue
from engine.grammar.checker import Checker
from engine.grammar.limits import (
    BUILD_BYTES,
    BUILD_CPU_S,
    BUILDERS,
    MAX_CACHED,
    MAX_PENDING,
    parser_limits,
)
from engine.grammar.matcher import Matcher, mask_words
from engine.grammar.source import (
    NO_TEXT,
    checked_text,
    grammar_error,
    library_text,
    one_sentence,
    parse_source,
)
from engine.grammar.tool_calls import texts
from engine.grammar.vocabulary import Vocabulary, library_tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer

_UNSATISFIABLE = ("NoExtension", "NoExtensionBias")
_STOPPED = "The engine has stopped."
TOO_COSTLY = (
    f"building it takes more than {BUILD_CPU_S} seconds or {BUILD_BYTES >> 20} MiB; make it simpler"
)


@dataclass(frozen=True, slots=True)
class CompiledGrammar:
    """A compiled grammar, shared by all requests that use it.

    Attributes:
        grammar: its source.
        start: a matcher in the initial state; never advanced, only copied.
        not_enforced: keywords of its schema that it does not enforce.
    """

    grammar: Grammar
    start: Matcher
    not_enforced: tuple[str, ...] = ()

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
        self._cache: OrderedDict[Grammar, Future[CompiledGrammar]] = OrderedDict()  # complete ones
        self._builds: dict[Grammar, Build] = {}  # the others
        self._queue = BuildQueue(builders)
        self._closed = False
        self._lock = threading.Lock()  # guards the four above
        self._tokenizer: LLTokenizer | None = None
        self._tokenizer_lock = threading.Lock()  # guards the one above
        self._pool = ThreadPoolExecutor(builders, "pravaha-grammar")
        self._checkers = [checker() for _ in range(builders)]
        self._idle = list(self._checkers)  # one per pool thread

    def build(self, grammar: Grammar) -> "Future[CompiledGrammar]":
        """Return a future of the compiled grammar, from the cache if possible. Never blocks for a build.

        The future raises `InvalidRequest` if the grammar cannot be built, `EngineUnavailable` if the
        compiler is closed first. Cancel it when the result is not needed any more: a build that nobody
        waits for is not started.

        Raises:
            InvalidRequest: `parse_source` rejects the grammar.
            QueueFull: too many builds are pending.
            EngineUnavailable: the compiler is closed.
        """
        with self._lock:
            known = self._known(grammar)
        if known is not None:
            return known
        parsed = parse_source(grammar)
        with self._lock:
            if self._closed:
                raise EngineUnavailable(_STOPPED)
            known = self._known(grammar)
            if known is not None:
                return known
            if len(self._builds) >= self._max_pending:
                raise QueueFull(f"{len(self._builds)} grammars are being built; try again later.")
            build = self._builds[grammar] = Build(grammar, parsed)
            self._queue.put(build)
            self._pool.submit(self._work)
            return self._wait_for(build)

    def close(self) -> None:
        """End the builds and their processes; compiled grammars stay usable. Idempotent."""
        with self._lock:
            self._closed = True
            abandoned = self._queue.clear()
        for build in abandoned:
            self._finish(build, EngineUnavailable(_STOPPED))
        for checker in self._checkers:
            checker.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _known(self, grammar: Grammar) -> "Future[CompiledGrammar] | None":
        """The cached result, or a future of the build in progress. The caller holds the lock."""
        cached = self._cache.get(grammar)
        if cached is not None:
            self._cache.move_to_end(grammar)
            return cached
        build = self._builds.get(grammar)
        return None if build is None else self._wait_for(build)

    def _wait_for(self, build: Build) -> "Future[CompiledGrammar]":
        """A future for one more caller; its cancellation may cancel the build."""
        waiter: Future[CompiledGrammar] = Future()
        build.waiters.append(waiter)
        waiter.add_done_callback(lambda done: self._leave(build, done))
        return waiter

    def _leave(self, build: Build, waiter: "Future[CompiledGrammar]") -> None:
        """Discard a queued build if the last caller that waited for it cancelled its future."""
        if not waiter.cancelled():
            return
        with self._lock:
            if waiter in build.waiters:
                build.waiters.remove(waiter)
                if not build.waiters and self._queue.discard(build):
                    del self._builds[build.grammar]

    def _work(self) -> None:
        """Build what the queue gives, on a pool thread, until it gives nothing."""
        while True:
            with self._lock:
                build = self._queue.take()
            if build is None:
                return
            try:
                outcome: CompiledGrammar | Exception | None = self._build(build)
            except Exception as error:
                outcome = error
            with self._lock:
                self._queue.release(build)
                if outcome is None and self._closed:
                    outcome = EngineUnavailable(_STOPPED)
                elif outcome is None:
                    self._retry(build)
                    continue
            self._finish(build, outcome)

    def _retry(self, build: Build) -> None:
        """Queue a build in the slow lane, if anyone still waits for it. The caller holds the lock."""
        build.quick = False
        if build.waiters:
            self._queue.put(build)
        else:
            del self._builds[build.grammar]

    def _finish(self, build: Build, outcome: "CompiledGrammar | Exception") -> None:
        """Cache the outcome of a build and give it to the callers that wait for it."""
        result: Future[CompiledGrammar] = Future()
        _settle(result, outcome)
        with self._lock:
            del self._builds[build.grammar]
            waiters, build.waiters = build.waiters, []
            if not isinstance(outcome, EngineUnavailable):
                self._cache[build.grammar] = result
                if len(self._cache) > self._max_cached:
                    self._cache.popitem(last=False)
        for waiter in waiters:
            if waiter.set_running_or_notify_cancel():
                _settle(waiter, outcome)

    def _build(self, build: Build) -> CompiledGrammar | None:
        """Build a grammar; None if it exceeds the allowance of the quick lane."""
        from llguidance import LLMatcher

        grammar = build.grammar
        checker = self._idle.pop()
        try:
            checked = (
                _checked_calls(build, checker)
                if grammar.kind == "tool_calls"
                else _checked(build, checker)
            )
        finally:
            self._idle.append(checker)
        if checked is None:
            return None
        text, left_out = checked
        library = LLMatcher(
            self._library_tokenizer(), text, limits=parser_limits(grammar.kind), log_level=0
        )
        if not library.is_error():
            library.compute_bitmask()  # the first mask is the most expensive one; copies reuse it
        if library.is_error():
            raise grammar_error(grammar, _readable(library.get_error()))
        words = mask_words(self._vocab_size)
        return CompiledGrammar(grammar, Matcher(library, mask_words=words), left_out)

    def _library_tokenizer(self) -> "LLTokenizer":
        with self._tokenizer_lock:
            if self._tokenizer is None:
                self._tokenizer = library_tokenizer(self._vocabulary, self._vocab_size)
            return self._tokenizer


def _checked(build: Build, checker: Checker) -> tuple[str, tuple[str, ...]] | None:
    """The library's text of a grammar that can be built, and the names of what it does not enforce.

    None if it exceeds the allowance of the quick lane.

    Raises:
        InvalidRequest: it cannot be built.
    """
    text, left_out = library_text(build.grammar, build.parsed)
    reason = checker.check(checked_text(text), quick=build.quick)
    if reason is None and build.quick:
        return None
    if reason != "":
        raise grammar_error(build.grammar, TOO_COSTLY if reason is None else _readable(reason))
    return text, left_out


def _checked_calls(build: Build, checker: Checker) -> tuple[str, tuple[str, ...]] | None:
    """As `_checked`, of calls of tools: the strictest grammar that can be built.

    One that exceeds the allowance of the slow lane is weakened, too, so that no schema refuses a request.
    """
    from llguidance import LLMatcher

    def can_build(lark: str) -> bool:
        text = checked_text(LLMatcher.grammar_from_lark(lark))
        return checker.check(text, quick=True) == ""

    reason: str | None = ""
    for one in texts(build.parsed, can_build):
        text = LLMatcher.grammar_from_lark(one.lark)
        reason = checker.check(checked_text(text), quick=build.quick)
        if reason is None and build.quick:
            return None
        if reason == "":
            return text, one.not_enforced
    raise grammar_error(build.grammar, TOO_COSTLY if reason is None else _readable(reason or ""))


def _settle(future: "Future[CompiledGrammar]", outcome: "CompiledGrammar | Exception") -> None:
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _readable(error: str) -> str:
    reason = one_sentence(error)
    return NO_TEXT if reason in _UNSATISFIABLE else reason
