"""`AsyncPravahaEngine`: the public interface to a loaded model.

The engine owns one thread (`engine.runtime.engine_thread`), which loads the model and runs its steps.
Callers never wait for a step: they put requests into a bounded queue, read output from mailboxes
(`RequestHandle`) and state from a frozen snapshot.
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from engine.api.config import EngineConfig
from engine.api.embeddings import Embeddings
from engine.api.errors import InvalidRequest, PravahaError
from engine.api.events import EventBus, RequestQueued
from engine.api.fork_price import ForkPrice
from engine.api.grammar import Grammar
from engine.api.request import Request, SamplingParams, new_request_id
from engine.api.scheduling import Scheduling
from engine.api.snapshot import (
    BlockMap,
    EngineSnapshot,
    EngineState,
    ModelInfo,
)
from engine.batch.sequence import Sequence, SequenceState
from engine.embedding.embedder import Embedder
from engine.grammar.compiler import CompiledGrammar, GrammarCompiler
from engine.memory.kv_identity import NO_CACHE_SALT
from engine.models.spec import ModelSpec
from engine.models.transformers_spec import TransformersSpec
from engine.runtime.assembly import PoolFactory, rust_pool
from engine.runtime.closing import ExitHook
from engine.runtime.engine_thread import EngineThread
from engine.runtime.forking import (
    SamplingChange,
    child_request,
    fork_point,
    price_of,
    prompt_and_output_ids,
)
from engine.runtime.intake import attach_matcher, make_sequence, prompt_array
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.loading import (
    ExecutorFactory,
    ModelOpener,
    load_executor,
    open_from_disk,
)
from engine.runtime.request_handle import RequestHandle
from engine.step.calibration import PROBES, Calibration, Probe
from engine.text.detokenizer import Detokenizer

if TYPE_CHECKING:
    from engine.observability.metrics import MetricsCollector
    from engine.text.tokenizer import Tokenizer

_log = logging.getLogger(__name__)


def _random_seed() -> int:
    return secrets.randbits(64)


class _NewRequest(NamedTuple):
    """A valid request that is not queued yet; `compilation` is its grammar's, while it runs."""

    sequence: Sequence
    detokenizer: Detokenizer
    compilation: "Future[CompiledGrammar] | None"


class AsyncPravahaEngine:
    """Runs one model for many callers. Every public method may be called from any thread.

    Attributes:
        config: the settings of the engine.
        events: publishes events about requests and the engine.
        embedder: the embedding model, loaded on first use.
    """

    def __init__(
        self,
        config: EngineConfig,
        *,
        executor_factory: ExecutorFactory = load_executor,
        model_opener: ModelOpener = open_from_disk,
        pool_factory: PoolFactory = rust_pool,
        embedder: Embedder | None = None,
        grammar_compiler: Callable[["Tokenizer", int], GrammarCompiler] = GrammarCompiler,
        clock: Callable[[], float] = time.monotonic,
        draw_seed: Callable[[], int] = _random_seed,
        probes: tuple[Probe, ...] = PROBES,
    ) -> None:
        """Create an engine; nothing is read or started before `start`.

        Args:
            config: the settings.
            executor_factory: loads the weights.
            model_opener: reads headers and vocabulary.
            pool_factory: makes the block allocator and the index of its blocks from (number of
                blocks, block size); without an index there is no prefix cache.
            embedder: computes embeddings; None uses the installed embedding model.
            grammar_compiler: makes the compiler from (tokenizer, vocabulary size).
            clock: monotonic seconds.
            draw_seed: returns a seed in [0, 2**64) for a request without one.
            probes: calibration steps of the step-time model, run once the engine is loaded and idle.
        """
        self.config = config
        self.events = EventBus()
        self.embedder = embedder or Embedder(threads=config.threads, dispatch=config.dispatch)
        self._clock = clock
        self._draw_seed = draw_seed
        self._lifecycle = Lifecycle(events=self.events, clock=clock)
        self._exit_hook = ExitHook(self)
        self._thread = EngineThread(
            config,
            self._lifecycle,
            self.events,
            executor_factory=executor_factory,
            model_opener=model_opener,
            pool_factory=pool_factory,
            grammar_compiler=grammar_compiler,
            calibration=Calibration(probes),
            clock=clock,
            on_stop=self._on_stop,
        )

    def _on_stop(self) -> None:
        self.embedder.close()
        self._exit_hook.disarm()

    # ---- lifecycle ----

    def start(self) -> None:
        """Start the engine's thread, which loads the model. Returns at once; call it once."""
        self._exit_hook.arm()
        self._thread.start()

    def wait_ready(self, timeout: float | None = None) -> None:
        """Block until the model is loaded.

        Raises:
            EngineUnavailable: loading failed, or the engine was shut down first.
            TimeoutError: it is still loading after `timeout` seconds.
        """
        if not self._thread.wait_settled(timeout):
            raise TimeoutError(f"{self.config.name} was not loaded after {timeout} s")
        self._lifecycle.require(EngineState.READY, EngineState.DRAINING)

    def drain(self) -> None:
        """Accept no new requests from now on; accepted ones run to their finish. Returns at once."""
        self._lifecycle.move_to(
            EngineState.DRAINING, only_from=(EngineState.LOADING, EngineState.READY)
        )
        self._thread.wake()  # an idle engine publishes its new state

    def wait_drained(self, timeout: float | None = None) -> bool:
        """Block until no request is live; False after `timeout` seconds."""
        return self._thread.requests.wait_empty(timeout)

    def shutdown(self) -> None:
        """Abort live requests, stop the thread, free the weights. Waits for at most one step.

        Idempotent. A load in progress stops at its next progress report.
        """
        self.drain()
        if not self._thread.started:
            self.embedder.close()
            self._lifecycle.move_to(EngineState.STOPPED, only_from=(EngineState.DRAINING,))
        self._thread.stop()

    # ---- requests ----

    def submit(self, request: Request) -> RequestHandle:
        """Validate a request and queue it. Waits for the model's headers, never for a step.

        Raises:
            InvalidRequest: a parameter out of range, a prompt too long, an id in use.
            QueueFull: as many requests wait as the queue holds.
            EngineUnavailable: not started, loading failed, draining or stopped.
        """
        return self.submit_all([request])[0]

    def submit_all(self, requests: Iterable[Request]) -> list[RequestHandle]:
        """Queue the requests of one call, all or none; otherwise as `submit`.

        Successive requests with equal prompts and `prompt_logprobs` score the prompt once.
        """
        return self._enqueue(requests, parent=None)

    def yield_core(self) -> AbstractContextManager[None]:
        """A context in which the engine computes on one core less, also within a running step.

        May be entered from any thread, for computations of milliseconds that would otherwise preempt a
        compute thread. Entering takes at most 2 ms. Has no effect if the engine has one compute thread or
        does not compute on this machine's cores.
        """
        yielder = self._thread.core_yielder
        return nullcontext() if yielder is None else yielder.yield_core()

    def fork(
        self,
        request_id: str,
        *,
        at: int | None = None,
        n: int = 1,
        sampling: SamplingParams | SamplingChange | None = None,
        request_ids: Iterable[str] | None = None,
    ) -> list[RequestHandle]:
        """Create `n` requests that continue a live request from one of its tokens. Never waits for a step.

        Children share their parent's KV blocks; at most one block is copied for each, none if the
        shared KV ends at a block boundary. Their prompt is the first `at` tokens of the parent; their
        output, text included, is what follows. Penalties include the parent's output, and a stop
        string may begin in it. Child `i` (from 1, over all forks of the parent) has the seed
        `engine.runtime.forking.child_seed(parent's seed, i)`.

        Args:
            request_id: the parent: waiting, running or preempted. For a finished request, submit its
                token ids instead: the prefix cache finds its blocks.
            at: number of prompt and output tokens to share; None shares all there are now.
            n: number of children.
            sampling: their sampling parameters; None uses the parent's, with its length limit, and a
                function modifies those. A seed in it replaces the parent's.
            request_ids: the `n` ids of the children; None generates them.

        Raises:
            InvalidRequest: no such live request, no such token, or invalid as for `submit`.
            QueueFull: not all children fit into the queue; none was queued.
            EngineUnavailable: as `submit`.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidRequest(f"n must be a positive integer, not {n!r:.40}.", param="n")
        ids = [new_request_id() for _ in range(n)] if request_ids is None else list(request_ids)
        if len(ids) != n:
            raise InvalidRequest(f"request_ids holds {len(ids)} ids for {n} forks.", param="n")
        parent, first = self._thread.requests.reserve_fork_numbers(request_id, n)
        tokens = prompt_and_output_ids(parent)
        tokens = tokens[: fork_point(parent, len(tokens), at)]
        requests = [
            child_request(parent, tokens, number=number, sampling=sampling, request_id=child_id)
            for number, child_id in enumerate(ids, first)
        ]
        return self._enqueue(requests, parent=parent)

    def build_grammar(self, grammar: Grammar) -> "Future[CompiledGrammar]":
        """Start compiling a grammar, or return the cached result. Never waits for the compilation.

        A request whose grammar is still being compiled waits for it, and fails if the grammar is
        invalid. To learn of that before submitting, wait for this future: it raises `InvalidRequest`.
        Cancel it if the result is not needed any more.

        Raises:
            InvalidRequest: not a grammar, or too large.
            QueueFull: too many compilations are pending.
            EngineUnavailable: as `submit`.
        """
        self._thread.wait_opened()
        compiler = self._thread.compiler
        if compiler is None:
            raise self._lifecycle.unavailable()
        return compiler.build(grammar)

    def embed(self, texts: Iterable[str]) -> Embeddings:
        """Embed texts with the embedding model. Waits for it, never for a step.

        Raises:
            InvalidRequest: a text is empty or too long for the embedding model.
            ModelNotFound: no embedding model is installed.
            ModelError: the embedding model is unusable.
            QueueFull: too many calls are pending.
            EngineUnavailable: the engine has stopped.
        """
        return self.embedder.submit(tuple(texts)).result()

    def price(self, token_ids: Iterable[int]) -> ForkPrice:
        """The cost of a request with these tokens as its prompt and no cache salt, now.

        Never waits for a step.

        Raises:
            InvalidRequest: the tokens cannot be a prompt.
            EngineUnavailable: not started, or the model cannot be opened.
        """
        opened = self._thread.wait_opened()
        prompt = prompt_array(tuple(token_ids), opened)
        pipeline = self._thread.pipeline
        if pipeline is None:
            raise AssertionError("a model was opened without a pipeline")
        size = opened.kv_cache.block_size
        cached, swapped = pipeline.blocks.lookup_prefix(prompt, NO_CACHE_SALT)
        tier = pipeline.blocks.tier
        return price_of(
            len(prompt),
            cached,
            size,
            pipeline.scheduler.work,
            swapped_blocks=swapped,
            swap_seconds=None if tier is None else tier.swap_in_seconds(swapped),
        )

    def _enqueue(
        self, requests: Iterable[Request], *, parent: Sequence | None
    ) -> list[RequestHandle]:
        """Queue requests, all or none."""
        thread = self._thread
        new: list[_NewRequest] = []
        try:
            for request in requests:
                new.append(self._prepare(request, parent, new[-1].sequence if new else None))
            thread.requests.accept(*(one.sequence for one in new))
        except PravahaError:
            for one in new:
                if one.compilation is not None:
                    one.compilation.cancel()
            raise
        thread.wake()
        for sequence, _, compilation in new:
            if compilation is not None:
                thread.enqueue_after_grammar(sequence, compilation)
            if self.events.has_subscribers(RequestQueued):
                self.events.publish(
                    RequestQueued(sequence.queued_at, sequence.request_id, sequence.num_prompt)
                )
        return [
            RequestHandle(
                sequence.request,
                sequence.mailbox,
                seed=int(sequence.sampling["seed"]),
                detokenizer=None if sequence.detokenizer is detokenizer else detokenizer,
                abort=partial(thread.abort, sequence),
                hub=thread.hub,
            )
            for sequence, detokenizer, _ in new
        ]

    def _prepare(
        self, request: Request, parent: Sequence | None, previous: Sequence | None
    ) -> "_NewRequest":
        """Validate a request, start the compilation of its grammar, and look up its prefix."""
        opened = self._thread.wait_opened()
        sequence, detokenizer = make_sequence(
            request,
            opened,
            now=self._clock(),
            draw_seed=self._draw_seed,
            parent=parent,
            choice_of=previous,
        )
        compilation = None
        if request.sampling.grammar is not None:
            compilation = self.build_grammar(request.sampling.grammar)
            if compilation.done():
                attach_matcher(sequence, compilation.result())
                compilation = None
            else:
                sequence.state = SequenceState.WAITING_FOR_GRAMMAR
        if self._thread.pipeline is not None:
            lookup_prefix = self._thread.pipeline.blocks.lookup_prefix
            blocks = sum(lookup_prefix(sequence.tokens, sequence.cache_salt))
            sequence.record["cached_tokens_hint"] = blocks * opened.kv_cache.block_size
        return _NewRequest(sequence, detokenizer, compilation)

    def abort(self, request_id: str) -> None:
        """Abort a request at the next step boundary; unknown ids are ignored."""
        sequence = self._thread.requests.get(request_id)
        if sequence is not None:
            self._thread.abort(sequence)

    @property
    def scheduling(self) -> Scheduling:
        """The policy and batch former set last; they apply from the next step boundary on."""
        return self._thread.publisher.scheduling

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """Switch to another policy and batch former from the next step on. Never waits for a step.

        Running and waiting requests keep their state; only their order changes.

        Raises:
            InvalidRequest: unknown value.
            EngineUnavailable: the engine has stopped, or loading failed.
        """
        scheduling.validate()
        self._lifecycle.require(EngineState.LOADING, EngineState.READY, EngineState.DRAINING)
        self._thread.switch(scheduling)

    # ---- state ----

    def snapshot(self) -> EngineSnapshot:
        """The state of the engine at a recent step boundary, with rates as of now.

        A snapshot is published at each step boundary at which a request starts or finishes; otherwise
        every `SNAPSHOT_PERIOD_S` (`engine.runtime.snapshot_publisher`), or every `UNREAD_PERIOD_S` if
        the last one was not read.
        """
        return self._thread.publisher.snapshot()

    def blocks(self, since: int) -> BlockMap | None:
        """The KV block map, or None if none newer than epoch `since` was published.

        The call requests a block map for the next step boundary; a busy engine publishes none without
        a request.
        """
        return self._thread.publisher.blocks(since)

    @property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer; waits for the headers to be read.

        Raises:
            EngineUnavailable: not started, or the model cannot be opened.
        """
        return self._thread.wait_opened().model.tokenizer

    @property
    def spec(self) -> ModelSpec | TransformersSpec:
        """The model's shapes; waits for the headers to be read.

        Raises:
            EngineUnavailable: not started, or the model cannot be opened.
        """
        return self._thread.wait_opened().model.spec

    @property
    def model_info(self) -> ModelInfo:
        """The loaded model.

        Raises:
            EngineUnavailable: it is not loaded; `snapshot().model` is None then.
        """
        info = self._thread.publisher.model_info
        if info is None:
            raise self._lifecycle.unavailable()
        return info

    @cached_property
    def metrics(self) -> "MetricsCollector":
        """The engine's metrics for Prometheus."""
        from engine.observability.metrics import MetricsCollector

        return MetricsCollector(
            model_name=self.config.name,
            snapshot=self.snapshot,
            counters=self._thread.counters.state,
        )

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Call back when a mailbox goes from empty to non-empty or the engine's state changes.

        The callback may run on any thread and must return at once; it should cause a drain soon after.
        """
        self._thread.hub.add_callback(callback)
