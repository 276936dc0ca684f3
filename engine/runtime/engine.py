"""`AsyncPravahaEngine`: the one public door to a model.

It owns one plain thread, which loads the model and then runs step after step: commands, schedule,
execute, apply, publish. Callers never wait for a step. They hand requests to a bounded queue, read
answers from mailboxes (`RequestHandle`) and state from a frozen snapshot. Without work the thread
blocks on its command queue and costs nothing.

Commands are functions, run on the engine's thread at step boundaries. `SimpleQueue.put` is
reentrant, so even a handle's finaliser may send one, on whatever thread garbage collection happens
to run.
"""

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from engine.api.config import EngineConfig
from engine.api.embeddings import Embeddings
from engine.api.errors import EngineUnavailable, InvalidRequest, PravahaError
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
from engine.batch.finish import failed
from engine.batch.request_queue import RequestQueue
from engine.batch.sequence import Sequence, SequenceState
from engine.embedding.embedder import Embedder
from engine.executors.base import CoreLender
from engine.grammar.compiler import CompiledGrammar, GrammarCompiler
from engine.models.spec import ModelSpec
from engine.models.transformers_spec import TransformersSpec
from engine.observability.counters import EngineCounters
from engine.runtime.assembly import PoolFactory, build_pipeline, build_pool, install, rust_pool
from engine.runtime.closing import ExitHook, close_pipeline
from engine.runtime.forking import SamplingChange, child_request, fork_point, known_tokens, price_of
from engine.runtime.intake import follow_grammar, prompt_array, take_in
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.live_requests import LiveRequests
from engine.runtime.loading import (
    ExecutorFactory,
    ModelOpener,
    Opened,
    describe,
    load_executor,
    open_from_disk,
    open_with_headers,
)
from engine.runtime.request_handle import RequestHandle
from engine.runtime.snapshot_publisher import SnapshotPublisher
from engine.runtime.thread_priority import give_way
from engine.runtime.wakeups import WakeHub
from engine.step.calibration import PROBES, Calibration, Probe
from engine.step.pipeline import Pipeline

if TYPE_CHECKING:
    from engine.observability.metrics import MetricsCollector
    from engine.text.tokenizer import Tokenizer

_log = logging.getLogger(__name__)

_PROGRESS_STEP = 0.01
QUIET_S = 0.25
"""Calibration steps run once no command has arrived for this long."""


def _random_seed() -> int:
    return secrets.randbits(64)


class _LoadingStoppedError(Exception):
    """Raised through the executor's loader when somebody shuts the engine down meanwhile."""


class AsyncPravahaEngine:
    """Runs one model for many callers. Every public method may be called from any thread.

    Attributes:
        config: what the engine was started with.
        events: facts about requests and the engine.
        embedder: the embedding model, which is loaded when it is first used.
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
        """Prepare an engine; nothing is read or started yet.

        Args:
            config: the settings.
            executor_factory: loads the weights.
            model_opener: reads headers and vocabulary.
            pool_factory: makes the block allocator, and the index of its blocks, from (blocks,
                block size); without an index nothing is cached.
            embedder: turns texts into vectors; None takes the installed embedding model.
            grammar_compiler: makes the compiler from (tokenizer, vocabulary size).
            clock: monotonic seconds.
            probes: steps that the step-time model is calibrated with, once loaded and idle.
            draw_seed: seeds for requests that bring none, in [0, 2**64).
        """
        self.config = config
        self.events = EventBus()
        self._executor_factory = executor_factory
        self._model_opener = model_opener
        self._pool_factory = pool_factory
        self._make_compiler = grammar_compiler
        self.embedder = embedder or Embedder(threads=config.threads, dispatch=config.dispatch)
        self._clock = clock
        self._draw_seed = draw_seed
        self._calibration = Calibration(probes)

        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lifecycle = Lifecycle(events=self.events, clock=clock)
        self._waiting = RequestQueue(config.max_queue)
        self._requests = LiveRequests(self._lifecycle, self._waiting)
        self._hub = WakeHub()
        self._counters = EngineCounters()
        self._publisher = SnapshotPublisher(
            self._lifecycle, self._requests, self._counters, config.scheduling, clock
        )
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._opened_event = threading.Event()  # headers read, or never will be
        self._settled = threading.Event()  # no longer loading
        self._exit_hook = ExitHook(self)

        # Written by the engine's thread alone.
        self._opened: Opened | None = None
        self._compiler: GrammarCompiler | None = None
        self._pipeline: Pipeline | None = None
        self._core_lender: CoreLender | None = None
        self._stopping = False

    # ---- life ----

    def start(self) -> None:
        """Start the thread, which begins to load. Returns at once; call it once."""
        if self._thread is not None:
            raise RuntimeError("the engine was started before")
        self._thread = threading.Thread(target=self._run, name="pravaha-engine", daemon=True)
        self._exit_hook.arm()
        self._pid = os.getpid()
        self._thread.start()

    def wait_ready(self, timeout: float | None = None) -> None:
        """Block until the model is loaded.

        Raises:
            EngineUnavailable: loading failed, or the engine was shut down first.
            TimeoutError: it still loads after `timeout` seconds.
        """
        if not self._settled.wait(timeout):
            raise TimeoutError(f"{self.config.name} was not loaded after {timeout} s")
        self._lifecycle.require(EngineState.READY, EngineState.DRAINING)

    def drain(self) -> None:
        """Take no new work from now on; what was accepted runs to its end. Returns at once."""
        self._lifecycle.move_to(
            EngineState.DRAINING, only_from=(EngineState.LOADING, EngineState.READY)
        )
        self._commands.put(_nothing)  # so that an idle engine publishes its new state

    def wait_drained(self, timeout: float | None = None) -> bool:
        """Block until no request is live; False if some still are after `timeout` seconds."""
        return self._requests.wait_empty(timeout)

    def shutdown(self) -> None:
        """Abort what still runs, stop the thread, free the weights. Waits for one step at most.

        Idempotent. A load in progress is cut short at its next progress report.
        """
        self.drain()
        thread = self._thread
        if thread is None:
            self.embedder.close()
            self._lifecycle.move_to(EngineState.STOPPED, only_from=(EngineState.DRAINING,))
            self._opened_event.set()
            self._settled.set()
            return
        self._commands.put(self._stop)
        if thread is not threading.current_thread():
            thread.join()

    # ---- work ----

    def submit(self, request: Request) -> RequestHandle:
        """Check a request and queue it. Never waits for a step, only for the model's headers.

        Raises:
            InvalidRequest: a parameter out of range, a prompt too long, an id in use.
            QueueFull: as many requests wait as the queue holds.
            EngineUnavailable: not started, loading failed, draining or stopped.
        """
        return self._enqueue(request, parent=None)

    def lend_core(self) -> AbstractContextManager[None]:
        """Inside it, compute on one processor less, also within a step that is under way.

        Any thread, for work of milliseconds that would otherwise interrupt the engine in the middle of
        a piece of its own; entering takes two milliseconds at most. Nothing changes where the engine
        has one thread, or does not compute on this machine's processors.
        """
        lender = self._core_lender
        return nullcontext() if lender is None else lender.lend_core()

    def fork(
        self,
        request_id: str,
        *,
        at: int | None = None,
        n: int = 1,
        sampling: SamplingParams | SamplingChange | None = None,
        request_ids: Iterable[str] | None = None,
    ) -> list[RequestHandle]:
        """Go on from where a live request is, or was, in `n` other ways. Never waits for a step.

        Children share their parent's KV blocks; at most one block is copied for each, none if the
        shared KV ends at a block's end. Their prompt is the parent's first tokens; their answer,
        text included, is what follows. Penalties go on counting the parent's answer, and a stop
        string may begin in it. Child `i` (from 1, over all forks of the parent) has the seed
        `engine.runtime.forking.child_seed(parent's seed, i)`.

        Args:
            request_id: the parent: waiting, running or preempted. For one that ended, submit its
                token ids instead: the prefix cache finds its blocks.
            at: how many tokens of prompt and answer to share; None shares all there are now.
            n: children.
            sampling: how they go on; None does as the parent, up to the parent's length, and a
                function changes that. A seed in it takes the place of the parent's.
            request_ids: the children's ids, `n` of them; None makes them.

        Raises:
            InvalidRequest: no such live request, no such token, or what `submit` refuses.
            QueueFull: not all children fit into the queue; none was queued.
            EngineUnavailable: as `submit`.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidRequest(f"n must be a positive integer, not {n!r:.40}.", param="n")
        ids = [new_request_id() for _ in range(n)] if request_ids is None else list(request_ids)
        if len(ids) != n:
            raise InvalidRequest(f"{len(ids)} ids are not enough for {n} forks.", param="n")
        parent, first = self._requests.number_forks(request_id, n)
        tokens = known_tokens(parent)
        tokens = tokens[: fork_point(parent, len(tokens), at)]
        handles: list[RequestHandle] = []
        try:
            for number, child_id in enumerate(ids, first):
                request = child_request(
                    parent, tokens, number=number, sampling=sampling, request_id=child_id
                )
                handles.append(self._enqueue(request, parent=parent))
        except BaseException:
            for handle in handles:
                handle.abort()
            raise
        return handles

    def build_grammar(self, grammar: Grammar) -> "Future[CompiledGrammar]":
        """Begin to build a grammar, or find it built; never waits for the build.

        A request whose grammar is not built yet waits for it, and fails if it is refused. Who wants
        the refusal first, waits for this future: it raises `InvalidRequest`.

        Raises:
            InvalidRequest: what is given is no grammar, or larger than any may be.
            QueueFull: too many builds are pending.
            EngineUnavailable: as `submit`.
        """
        self._wait_opened()
        if self._compiler is None:
            raise self._lifecycle.unavailable()
        return self._compiler.build(grammar)

    def embed(self, texts: Iterable[str]) -> Embeddings:
        """Texts as vectors, by an encoder of its own. Waits for it, not for a step.

        Raises:
            InvalidRequest: a text is empty or too long for the encoder.
            ModelNotFound: no embedding model is installed.
            ModelError: the embedding model cannot be used.
            QueueFull: too many calls are pending.
            EngineUnavailable: stopped.
        """
        return self.embedder.submit(tuple(texts)).result()

    def price(self, token_ids: Iterable[int]) -> ForkPrice:
        """What a request with these tokens would cost now. Waits for no step.

        Raises:
            InvalidRequest: the tokens cannot be a prompt.
            EngineUnavailable: not started, or the model cannot be opened.
        """
        opened = self._wait_opened()
        prompt = prompt_array(tuple(token_ids), opened)
        pipeline = self._pipeline
        if pipeline is None:
            raise AssertionError("opened, so there is a pipeline")
        size = opened.kv_cache.block_size
        cached, swapped = pipeline.blocks.lookup_prefix(prompt)
        tier = pipeline.blocks.tier
        return price_of(
            len(prompt),
            cached,
            size,
            pipeline.scheduler.work,
            swapped_blocks=swapped,
            swap_seconds=None if tier is None else tier.seconds_for(swapped),
        )

    def _enqueue(self, request: Request, *, parent: Sequence | None) -> RequestHandle:
        opened = self._wait_opened()
        sequence, detokenizer = take_in(
            request, opened, now=self._clock(), draw_seed=self._draw_seed, parent=parent
        )
        build = None
        if request.sampling.grammar is not None:
            build = self.build_grammar(request.sampling.grammar)
            if build.done():
                follow_grammar(sequence, build.result())
            else:
                sequence.state = SequenceState.WAITING_FOR_GRAMMAR
        if self._pipeline is not None:
            blocks = sum(self._pipeline.blocks.lookup_prefix(sequence.tokens))
            sequence.record["cached_tokens_hint"] = blocks * opened.kv_cache.block_size
        self._requests.accept(sequence)
        self._commands.put(_nothing)  # wakes an idle engine
        if build is not None and sequence.state is SequenceState.WAITING_FOR_GRAMMAR:
            build.add_done_callback(
                lambda built: self._commands.put(
                    partial(self._enqueue_after_grammar, sequence, built)
                )
            )
        if self.events.wanted(RequestQueued):
            self.events.publish(
                RequestQueued(sequence.queued_at, request.request_id, sequence.num_prompt)
            )
        return RequestHandle(
            request,
            sequence.mailbox,
            seed=int(sequence.sampling["seed"]),
            detokenizer=None if sequence.detokenizer is detokenizer else detokenizer,
            abort=partial(self._commands.put, partial(self._abort, sequence)),
            hub=self._hub,
        )

    def abort(self, request_id: str) -> None:
        """End a request at the next step boundary; unknown ids are ignored."""
        sequence = self._requests.get(request_id)
        if sequence is not None:
            self._commands.put(partial(self._abort, sequence))

    @property
    def scheduling(self) -> Scheduling:
        """The policy and batch former asked for last; in force from the next step boundary on."""
        return self._publisher.scheduling

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """Go on with another policy and batch former from the next step on. Waits for no step.

        Requests that run or wait stay as they are and are ordered anew.

        Raises:
            InvalidRequest: a value that is none.
            EngineUnavailable: the engine has stopped, or loading failed.
        """
        scheduling.validate()
        self._lifecycle.require(EngineState.LOADING, EngineState.READY, EngineState.DRAINING)
        self._publisher.scheduling = scheduling
        self._commands.put(partial(self._switch, scheduling))

    def _wait_opened(self) -> Opened:
        if self._thread is None:
            raise EngineUnavailable("The engine was not started.")
        if os.getpid() != self._pid:  # its thread did not come along, and would never answer
            raise EngineUnavailable("The engine runs in the process that this one was forked from.")
        self._opened_event.wait()
        if self._opened is None:
            raise self._lifecycle.unavailable()
        return self._opened

    # ---- what can be seen ----

    def snapshot(self) -> EngineSnapshot:
        """The engine at a step boundary; rates fall with time even when it idles.

        It is the last step boundary at which a request started or finished, or a later one: while
        requests just run, snapshots are published every `SNAPSHOT_PERIOD_S`
        (`engine.runtime.snapshot_publisher`), and every `UNREAD_PERIOD_S` while nobody reads them.
        """
        return self._publisher.snapshot()

    def blocks(self, since: int) -> BlockMap | None:
        """The KV blocks, or None if nothing newer than epoch `since` was published.

        Asking makes the engine publish a block map at its next step boundary, and only then.
        """
        return self._publisher.blocks(since)

    @property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer; waits for the headers to be read.

        Raises:
            EngineUnavailable: not started, or the model cannot be opened.
        """
        return self._wait_opened().model.tokenizer

    @property
    def spec(self) -> ModelSpec | TransformersSpec:
        """The model's shapes; waits for the headers to be read.

        Raises:
            EngineUnavailable: not started, or the model cannot be opened.
        """
        return self._wait_opened().model.spec

    @property
    def model_info(self) -> ModelInfo:
        """The loaded model.

        Raises:
            EngineUnavailable: it is not loaded (yet); `snapshot().model` is None then.
        """
        info = self._publisher.model_info
        if info is None:
            raise self._lifecycle.unavailable()
        return info

    @cached_property
    def metrics(self) -> "MetricsCollector":
        """The engine's figures for Prometheus."""
        from engine.observability.metrics import MetricsCollector

        return MetricsCollector(
            model_name=self.config.name, snapshot=self.snapshot, counters=self._counters.state
        )

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Call back when a mailbox goes from empty to non-empty or the engine's state changes.

        The callback runs on any thread, must return at once, and leads to a drain soon after.
        """
        self._hub.add_callback(callback)

    # ---- the engine's thread ----

    def _run(self) -> None:
        try:
            give_way(self.config.niceness)  # before the executor starts its own threads
            self._serve(self._load())
        except _LoadingStoppedError:
            pass
        except BaseException as error:  # a panic in Rust is no Exception
            # A model that cannot be used is nobody's bug here: whoever waits for it is told why.
            if self._settled.is_set() or not isinstance(error, PravahaError):
                _log.exception("The engine failed.")
            message = str(error) or type(error).__name__
            self._lifecycle.fail(message)
        finally:
            self._close_down()

    def _load(self) -> Pipeline:
        opened = open_with_headers(self.config, self._model_opener)
        model = opened.model
        pool = build_pool(self.config, opened, self._pool_factory)
        pipeline = self._pipeline = build_pipeline(
            self.config,
            opened,
            pool,
            self._waiting,
            scheduling=self._publisher.scheduling,
            counters=self._counters,
            events=self.events,
            clock=self._clock,
        )
        self._compiler = self._make_compiler(model.tokenizer, model.spec.vocab_size)
        self._opened = opened
        self._opened_event.set()
        executor = self._executor_factory(
            model,
            self.config,
            num_blocks=opened.kv_cache.num_blocks,
            max_model_len=opened.max_model_len,
            progress=partial(self._on_progress, pipeline),
        )
        install(executor, pipeline, pool, self.config)
        self._core_lender = executor if isinstance(executor, CoreLender) else None
        self._publisher.model_info = describe(self.config, opened, executor.info)
        self._publisher.loading_progress = 1.0
        self._lifecycle.move_to(EngineState.READY, only_from=(EngineState.LOADING,))
        self._publish()
        self._settled.set()
        return pipeline

    def _on_progress(self, pipeline: Pipeline, progress: float) -> None:
        """How far loading is. Requests that nobody wants any more need not wait for its end."""
        self._run_commands()
        if self._stopping:
            raise _LoadingStoppedError
        shown = progress - self._publisher.published.loading_progress >= _PROGRESS_STEP
        self._publisher.loading_progress = progress
        self._publish_and_wake(pipeline)
        if shown:
            self._hub.call_back()

    def _serve(self, pipeline: Pipeline) -> None:
        while not self._stopping:
            idle = not pipeline.has_work
            saving = idle and self._save_idle(pipeline)
            if idle and not saving:
                self._await_command(pipeline)
            self._run_commands()
            if pipeline.has_finished:  # an abort is delivered now, not after the next step
                self._publish_and_wake(pipeline)
            elif idle:
                self._publish()
            if pipeline.has_work and not self._stopping:
                pipeline.step()
                self._publish_and_wake(pipeline)

    def _await_command(self, pipeline: Pipeline) -> None:
        """Block until somebody asks for something; times a few steps first, if it stays quiet."""
        while self._calibration.pending:
            try:
                self._commands.get(timeout=QUIET_S)()
            except Empty:
                pipeline.calibrate(self._calibration)
                self._publish()
            else:
                return
        self._commands.get()()

    def _save_idle(self, pipeline: Pipeline) -> bool:
        """Give an idle moment to the swap tier; False when it wants none."""
        tier = pipeline.blocks.tier
        if tier is None or not tier.save_idle():
            self._publish()  # what was saved is seen, and what was freed meanwhile
            return False
        return True

    def _run_commands(self) -> None:
        """Apply what callers asked for since the last step."""
        commands = self._commands
        while not commands.empty():
            commands.get()()

    def _enqueue_after_grammar(self, sequence: Sequence, built: "Future[CompiledGrammar]") -> None:
        """A sequence's grammar was compiled or refused: queue the sequence, or finish it."""
        self._requests.grammar_settled(sequence)
        if sequence.finished or self._pipeline is None:
            return
        try:
            follow_grammar(sequence, built.result())
            sequence.move_to(SequenceState.WAITING)
            self._waiting.put(sequence)
        except PravahaError as error:
            self._pipeline.finish(sequence, failed(str(error)))
        except (Exception, CancelledError) as error:
            _log.exception("The compilation of a grammar failed.")
            message = f"The grammar could not be built: {error or type(error).__name__}."
            self._pipeline.finish(sequence, failed(message))

    def _abort(self, sequence: Sequence) -> None:
        if self._pipeline is not None:
            self._pipeline.abort(sequence)

    def _switch(self, scheduling: Scheduling) -> None:
        if self._pipeline is not None:
            self._pipeline.scheduler.switch(scheduling)

    def _stop(self) -> None:
        self._stopping = True

    def _close_down(self) -> None:
        """Finish every request and free everything; the last thing the thread does."""
        error = self._lifecycle.error
        self._lifecycle.move_to(
            EngineState.DRAINING, only_from=(EngineState.LOADING, EngineState.READY)
        )  # from here on `submit` accepts nothing
        pipeline = self._pipeline
        if pipeline is not None:
            close_pipeline(pipeline, self._requests.all(), error and error[0])
        if self._compiler is not None:
            self._compiler.close()
        self.embedder.close()
        self._lifecycle.move_to(EngineState.STOPPED, only_from=(EngineState.DRAINING,))
        self._publish()
        self._opened_event.set()
        self._settled.set()
        if pipeline is not None:
            self._publish_and_wake(pipeline)
        self._exit_hook.disarm()

    # ---- publishing (the engine's thread) ----

    def _publish_and_wake(self, pipeline: Pipeline) -> None:
        """Publish what happened, deliver finishes, then wake the readers."""
        self._publisher.note_step()
        finished = pipeline.take_finished()
        if finished or self._publisher.is_stale(pipeline):
            self._publish()
        for one in finished:
            self._requests.forget(one.sequence)
            one.deliver(self.events)
        self._hub.signal(finished=bool(finished))
        if self._hub.has_callbacks and (pipeline.writer.take_refilled() or finished):
            self._hub.call_back()

    def _publish(self) -> None:
        if self._publisher.publish(self._pipeline):
            self._hub.call_back()  # only now can the new state be seen


def _nothing() -> None:
    """The command that only wakes an idle engine."""
