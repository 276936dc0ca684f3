"""`EngineThread`: the thread that loads a model, runs its steps, and replaces it on request.

One iteration: run commands, schedule, execute, apply, publish. Without work the thread blocks on its
command queue and uses no CPU time.

Commands are functions that this thread runs at step boundaries. `SimpleQueue.put` is reentrant, so a
handle's finalizer may send one from any thread, even during garbage collection.
"""

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from engine.api.config import EngineConfig
from engine.api.errors import EngineUnavailable, PravahaError
from engine.api.events import EventBus
from engine.api.request import SamplingParams
from engine.api.scheduling import Scheduling
from engine.api.snapshot import EngineState
from engine.batch.finish import failed
from engine.batch.request_queue import RequestQueue
from engine.batch.sequence import Sequence, SequenceState
from engine.executors.base import CoreYielder
from engine.grammar.compiler import CompiledGrammar, GrammarCompiler
from engine.grammar.reasoning_matcher import ReasoningMatcher
from engine.observability.counters import EngineCounters
from engine.runtime.assembly import (
    PoolFactory,
    build_pipeline,
    build_pool,
    install,
    install_draft_model,
    open_tier,
)
from engine.runtime.closing import close_pipeline
from engine.runtime.draft_headers import DraftHeaders
from engine.runtime.intake import attach_matcher
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.live_requests import LiveRequests
from engine.runtime.loading import (
    ExecutorFactory,
    FreeMemory,
    ModelOpener,
    Opened,
    describe,
    open_with_headers,
    with_pool,
)
from engine.runtime.model_change import ModelChange, NextModel
from engine.runtime.snapshot_publisher import SnapshotPublisher
from engine.runtime.thread_priority import lower_thread_priority
from engine.runtime.wakeups import WakeHub
from engine.step.calibration import Calibration, Probe
from engine.step.pipeline import Pipeline

if TYPE_CHECKING:
    from engine.text.tokenizer import Tokenizer

_log = logging.getLogger(__name__)

_PROGRESS_STEP = 0.01
CALIBRATION_IDLE_S = 0.25
"""Calibration steps run after no command has arrived for this long."""


class _LoadingStoppedError(Exception):
    """Raised from the progress callback to stop a load when the engine is shut down."""


@dataclass(frozen=True, slots=True)
class CurrentModel:
    """What callers on other threads use of a model: one object, so that no call mixes two models.

    Attributes:
        opened: the model with its headers read.
        compiler: compiles grammars.
        pipeline: runs the requests.
    """

    opened: Opened
    compiler: GrammarCompiler
    pipeline: Pipeline


class EngineThread:
    """Loads and runs one model at a time.

    Attributes:
        requests: the table of live requests.
        hub: wakes readers.
        counters: counts requests, tokens and steps.
        publisher: publishes snapshots and block maps.
        config: the settings, with the path and name of the model that was loaded last.
        current: the model; None until its headers are read, and while there is none.
        core_yielder: the executor, if it can yield a core; None while weights load.
    """

    def __init__(
        self,
        config: EngineConfig,
        lifecycle: Lifecycle,
        events: EventBus,
        *,
        executor_factory: ExecutorFactory,
        model_opener: ModelOpener,
        pool_factory: PoolFactory,
        grammar_compiler: Callable[["Tokenizer", int], GrammarCompiler],
        find_free_memory: FreeMemory,
        probes: tuple[Probe, ...],
        clock: Callable[[], float],
        on_stop: Callable[[], None],
    ) -> None:
        """Create the thread; when it ends, it calls `on_stop` last."""
        self.config = config
        self._lifecycle = lifecycle
        self._events = events
        self._executor_factory = executor_factory
        self._model_opener = model_opener
        self._pool_factory = pool_factory
        self._make_compiler = grammar_compiler
        self._find_free = find_free_memory
        self._probes = probes
        self._calibration = Calibration(())
        self._clock = clock
        self._on_stop = on_stop

        self._waiting = RequestQueue(config.max_queue)
        self.requests = LiveRequests(lifecycle, self._waiting)
        self.hub = WakeHub()
        self.counters = EngineCounters()
        self.publisher = SnapshotPublisher(
            lifecycle,
            self.requests,
            self.counters,
            config.scheduling,
            clock,
            events=events,
        )
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._headers_settled = threading.Event()  # headers were read, or loading failed
        self._settled = threading.Event()  # no longer loading
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._compilations: dict[Sequence, Future[CompiledGrammar]] = {}

        # Written by the thread alone.
        self.current: CurrentModel | None = None
        self.core_yielder: CoreYielder | None = None
        self._stopping = False
        self._change: ModelChange | None = None  # set by commands
        self._open_tier: Callable[[], None] | None = None  # None while there is no model

    # ---- any thread ----

    @property
    def started(self) -> bool:
        """Whether `start` was called."""
        return self._thread is not None

    @property
    def pipeline(self) -> Pipeline | None:
        """Runs the requests of the current model; None without one."""
        current = self.current
        return None if current is None else current.pipeline

    def start(self, *, without_model: str | None = None) -> None:
        """Start the thread, which loads the model. Call it once.

        Args:
            without_model: why there is no model to load; None loads that of `config`.
        """
        if self._thread is not None:
            raise RuntimeError("the engine was already started")
        self._thread = threading.Thread(
            target=self._run, args=(without_model,), name="pravaha-engine", daemon=True
        )
        self._pid = os.getpid()
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the current step and wait for it; release waiters if it never ran."""
        thread = self._thread
        if thread is None:
            self._headers_settled.set()
            self._settled.set()
            return
        self.send(self._stop)
        if thread is not threading.current_thread():
            thread.join()

    def send(self, command: Callable[[], None]) -> None:
        """Run a command on the thread at the next step boundary. Reentrant."""
        self._commands.put(command)

    def wake(self) -> None:
        """Make an idle engine check for work and publish its state."""
        self.send(_nothing)

    def abort(self, sequence: Sequence) -> None:
        """Abort a request at the next step boundary. Reentrant."""
        self.send(partial(self._abort, sequence))

    def end_reasoning(self, sequence: Sequence) -> "Future[bool]":
        """End a request's reasoning at the next step boundary; False if it does not reason then."""
        ended: Future[bool] = Future()
        self.send(partial(_end_reasoning, sequence, ended))
        return ended

    def switch(self, scheduling: Scheduling) -> None:
        """Use another policy and batch former from the next step boundary on."""
        self.publisher.scheduling = scheduling
        self.send(partial(self._switch, scheduling))

    def change_model(self, change: ModelChange) -> None:
        """Replace or unload the model, once its requests have finished or the deadline has passed.

        Raises:
            EngineUnavailable: another change is in progress, or the engine is not running.
        """
        next_model = change.next
        self._lifecycle.begin_change(None if next_model is None else next_model.config.name)
        self._settled.clear()
        self.send(partial(self._begin_change, change))

    def reopen_tier(self) -> None:
        """Open the swap tier at the next step boundary if it could not be when the model was loaded."""
        self.send(self._reopen_tier)

    def drop_change(self) -> None:
        """Keep the model if a change of it waits for requests: the engine is shutting down."""
        self.send(self._drop_change)

    def hasten_change(self, deadline: float) -> None:
        """Let the change that waits for requests wait no longer than until `deadline`."""
        self.send(partial(self._hasten_change, deadline))

    def enqueue_after_grammar(
        self, sequence: Sequence, compilation: "Future[CompiledGrammar]"
    ) -> None:
        """Queue an accepted request once its grammar is compiled; fail it if the grammar is invalid.

        An abort of the request cancels the compilation.
        """
        self._compilations[sequence] = compilation
        compilation.add_done_callback(
            lambda done: self.send(partial(self._enqueue_after_grammar, sequence, done))
        )

    def wait_opened(self) -> CurrentModel:
        """Wait until the model's headers are read.

        Raises:
            EngineUnavailable: not started, running in another process, or there is no usable model.
        """
        if self._thread is None:
            raise EngineUnavailable("The engine was not started.")
        if os.getpid() != self._pid:  # threads are not copied by fork()
            raise EngineUnavailable("The engine runs in the process that this one was forked from.")
        self._headers_settled.wait()
        current = self.current
        if current is None:
            raise self._lifecycle.unavailable()
        return current

    def wait_settled(self, timeout: float | None) -> bool:
        """Wait until loading succeeded, failed or was stopped; False after `timeout` seconds."""
        return self._settled.wait(timeout)

    # ---- the thread ----

    def _run(self, without_model: str | None) -> None:
        try:
            lower_thread_priority(
                self.config.niceness
            )  # before the executor starts its own threads
            pipeline: Pipeline | None = None
            if without_model is None:
                pipeline = self._load_or_stay_unloaded(self.config.name, self._load_first)
            else:
                self._stay_unloaded(without_model)
            while not self._stopping:
                self._serve(pipeline)
                if not self._stopping and (change := self._take_change()) is not None:
                    pipeline = self._replace_model(change)
        except _LoadingStoppedError:
            pass
        except BaseException as error:  # a Rust panic is not an Exception
            _log.exception("The engine failed.")
            self._lifecycle.fail(str(error) or type(error).__name__)
        finally:
            self._close_down()

    def _load(self, opened: Opened) -> Pipeline:
        model = opened.model
        pool = build_pool(self.config, opened, self._pool_factory)
        pipeline = build_pipeline(
            self.config,
            opened,
            pool,
            self._waiting,
            scheduling=self.publisher.scheduling,
            counters=self.counters,
            events=self._events,
            clock=self._clock,
        )
        compiler = self._make_compiler(model.tokenizer, model.spec.vocab_size)
        self.current = CurrentModel(opened, compiler, pipeline)
        self.requests.serve(opened)
        self._headers_settled.set()
        if self.config.generation_config == "auto" and model.generation_defaults.dry_multiplier:
            # Nearly every request will use DRY: its first one need not wait 50 ms for the vocabulary.
            breakers = SamplingParams().dry_sequence_breakers
            threading.Thread(
                target=opened.breakers.compile,
                args=(breakers,),
                name="pravaha-breakers",
                daemon=True,
            ).start()
        config = replace(self.config, window_blocks=opened.kv_cache.num_window_blocks)
        if opened.kv_cache.num_state_slots:
            config = replace(config, state_slots=opened.kv_cache.num_state_slots)
        if opened.needs_weight_cache:
            config = replace(config, needs_weight_cache=True)
        executor = self._executor_factory(
            model,
            config,
            num_blocks=opened.kv_cache.num_blocks,
            max_model_len=opened.max_model_len,
            progress=partial(self._on_progress, pipeline),
        )
        install(executor, pipeline, pool, self.config)
        self._open_tier = partial(open_tier, executor, pool, self.config)
        if opened.draft is not None:
            self._load_draft_model(opened.draft, pipeline)
        self.core_yielder = executor if isinstance(executor, CoreYielder) else None
        self._calibration = Calibration(self._probes)
        self.publisher.model_info = describe(self.config, opened, executor.info)
        self.publisher.loading_progress = 1.0
        self._lifecycle.finish_loading()
        self._publish()
        self._settled.set()
        return pipeline

    def _load_draft_model(self, draft: DraftHeaders, pipeline: Pipeline) -> None:
        """Load the model that drafts for the one of the pipeline; takes a fraction of its time."""
        executor = self._executor_factory(
            draft.model,
            draft.config,
            num_blocks=draft.num_blocks,
            max_model_len=draft.max_len,
            progress=lambda share: None,
        )
        try:
            install_draft_model(executor, pipeline, draft, self.config)
        except BaseException:
            executor.close()
            raise

    def _on_progress(self, pipeline: Pipeline, progress: float) -> None:
        """Publish the loading progress, and run commands, so that an abort does not wait for the load."""
        self._run_commands()
        if self._stopping:
            raise _LoadingStoppedError
        shown = progress - self.publisher.published.loading_progress >= _PROGRESS_STEP
        self.publisher.loading_progress = progress
        self.publish_and_wake(pipeline)
        if shown:
            self.hub.run_callbacks()

    def _replace_model(self, change: ModelChange) -> Pipeline | None:
        """Unload the model and load the next one; None if there is none, or it cannot be loaded."""
        self._unload(change.reason)
        upcoming = change.next
        if upcoming is None:
            self._stay_unloaded(None)
            return None
        if not self._lifecycle.begin_loading():
            self._stay_unloaded(None)
            return None
        self._publish()
        return self._load_or_stay_unloaded(upcoming.config.name, partial(self._load_next, upcoming))

    def _load_or_stay_unloaded(self, name: str, load: Callable[[], Pipeline]) -> Pipeline | None:
        """Load a model; if that fails, publish the reason and return None: another can be loaded."""
        try:
            return load()
        except _LoadingStoppedError:
            raise
        except BaseException as error:  # a Rust panic is not an Exception
            # An unusable model is not a defect of the engine: callers get the error; nothing is logged.
            if not isinstance(error, PravahaError):
                _log.exception("Loading %s failed.", name)
            reason = str(error) or type(error).__name__
            message = f"{name} could not be loaded: {reason.rstrip('.')}."
            self._unload(message)
            self._stay_unloaded(message)
            return None

    def _load_first(self) -> Pipeline:
        """Load the model of the settings."""
        return self._load(open_with_headers(self.config, self._model_opener, self._find_free))

    def _load_next(self, upcoming: NextModel) -> Pipeline:
        """Load a model whose headers were read; its KV pool is sized by what is free now."""
        config, headers = upcoming.config, upcoming.headers
        self.config = config
        free = self._find_free(headers.model, config)
        return self._load(with_pool(headers, config, available=free))

    def _unload(self, error: str) -> None:
        """End the requests that still run, and free the model's memory."""
        self.core_yielder = None
        self._open_tier = None
        self._calibration = Calibration(())
        current = self.current
        if current is not None:
            close_pipeline(current.pipeline, self.requests.all(), error)
            current.compiler.close()
        self._headers_settled.clear()  # late: callers of `wait_opened` wait from here on
        if current is not None:
            self.current = None
            self.publisher.forget_model()
            self.publish_and_wake(current.pipeline)

    def _stay_unloaded(self, error: str | None) -> None:
        """Publish that there is no model, and why; callers get that error."""
        self._lifecycle.unload(error)
        self._headers_settled.set()
        self._publish()
        self._settled.set()

    def _reopen_tier(self) -> None:
        if self._open_tier is not None:
            self._open_tier()

    def _begin_change(self, change: ModelChange) -> None:
        self._change = change
        self._publish()  # shows the next model

    def _drop_change(self) -> None:
        if self._take_change() is not None:
            self._settled.set()

    def _hasten_change(self, deadline: float) -> None:
        if self._change is not None:
            self._change = replace(self._change, deadline=min(deadline, self._change.deadline))

    def _change_due(self) -> bool:
        """Whether the model is to be replaced now."""
        change = self._change
        if change is None or self._lifecycle.closing:
            return False
        return self.requests.empty or self._clock() >= change.deadline

    def _take_change(self) -> ModelChange | None:
        change, self._change = self._change, None
        return change

    def _serve(self, pipeline: Pipeline | None) -> None:
        """Run steps until the engine is to stop or to change its model."""
        if pipeline is None:
            while not self._stopping and not self._change_due():
                self._commands.get()()
                self._publish()
            return
        while not self._stopping and not self._change_due():
            idle = not _is_ready(pipeline)
            saving = idle and self._save_idle(pipeline)
            if idle and not saving:
                self._await_command(pipeline)
            self._run_commands()
            if pipeline.has_finished:  # deliver aborts before the next step
                self.publish_and_wake(pipeline)
            elif idle:
                self._publish()
            if _is_ready(pipeline) and not self._stopping:
                pipeline.step()
                self.publish_and_wake(pipeline)

    def _await_command(self, pipeline: Pipeline) -> None:
        """Block until a command arrives; run pending calibration steps while none does."""
        while self._calibration.pending and self._change is None and not pipeline.has_work:
            try:
                self._commands.get(timeout=CALIBRATION_IDLE_S)()
            except Empty:
                pipeline.calibrate(self._calibration)
                self._publish()
            else:
                return
        try:
            self._commands.get(timeout=self._until_due(pipeline))()
        except Empty:
            pass  # the change is due, or a held request

    def _until_deadline(self) -> float | None:
        """Seconds until the model is changed at the latest; None if it is not going to be."""
        if self._change is None or self._lifecycle.closing:
            return None
        return max(0.0, self._change.deadline - self._clock())

    def _until_due(self, pipeline: Pipeline) -> float | None:
        """Seconds until something is to be done without a command; None for never."""
        until, idle_until = self._until_deadline(), pipeline.idle_until
        if idle_until is None:
            return until
        held = max(0.0, idle_until - self._clock())
        return held if until is None else min(until, held)

    def _save_idle(self, pipeline: Pipeline) -> bool:
        """Save blocks and states in the swap tier while the engine is idle; False when there are none."""
        if not pipeline.blocks.save_idle():
            self._publish()  # shows the saved blocks and those freed meanwhile
            return False
        return True

    def _run_commands(self) -> None:
        commands = self._commands
        while not commands.empty():
            commands.get()()

    def _enqueue_after_grammar(
        self, sequence: Sequence, compilation: "Future[CompiledGrammar]"
    ) -> None:
        self._compilations.pop(sequence, None)
        self.requests.grammar_settled(sequence)
        current = self.current
        if sequence.finished or current is None:
            return
        try:
            attach_matcher(
                sequence, compilation.result(), vocab_size=current.opened.model.spec.vocab_size
            )
            sequence.move_to(SequenceState.WAITING)
            self._waiting.put(sequence)
        except PravahaError as error:
            current.pipeline.finish(sequence, failed(str(error)))
        except (Exception, CancelledError) as error:
            _log.exception("The compilation of a grammar failed.")
            message = f"The grammar could not be built: {error or type(error).__name__}."
            current.pipeline.finish(sequence, failed(message))

    def _abort(self, sequence: Sequence) -> None:
        compilation = self._compilations.get(sequence)
        if compilation is not None:
            compilation.cancel()
        if self.current is not None:
            self.current.pipeline.abort(sequence)

    def _switch(self, scheduling: Scheduling) -> None:
        if self.current is not None:
            self.current.pipeline.scheduler.switch(scheduling)

    def _stop(self) -> None:
        self._stopping = True

    def _close_down(self) -> None:
        """Finish every request, free the pipeline's memory and publish the final state."""
        error = self._lifecycle.error
        self._lifecycle.drain()  # from here on no request is accepted
        current = self.current
        if current is not None:
            close_pipeline(current.pipeline, self.requests.all(), error and error[0])
            current.compiler.close()
        self._lifecycle.move_to(EngineState.STOPPED, only_from=(EngineState.DRAINING,))
        self._publish()
        self._headers_settled.set()
        self._settled.set()
        if current is not None:
            self.publish_and_wake(current.pipeline)
        self._on_stop()

    def publish_and_wake(self, pipeline: Pipeline) -> None:
        """Publish a snapshot if needed, deliver finishes, then wake readers."""
        self.publisher.note_step()
        finished = pipeline.take_finished()
        if finished or self.publisher.is_stale(pipeline):
            self._publish()
        for one in finished:
            self.requests.remove(one.sequence)
            one.deliver(self._events)
        self.hub.signal(finished=bool(finished))
        if self.hub.has_callbacks and (pipeline.writer.take_refilled() or finished):
            self.hub.run_callbacks()

    def _publish(self) -> None:
        if self.publisher.publish(None if self.current is None else self.current.pipeline):
            self.hub.run_callbacks()  # after publishing, so that readers see the new state


def _is_ready(pipeline: Pipeline) -> bool:
    """Whether a step may run something."""
    return pipeline.has_work and pipeline.idle_until is None


def _nothing() -> None:
    """The command that only wakes an idle engine."""


def _end_reasoning(sequence: Sequence, ended: "Future[bool]") -> None:
    matcher = sequence.matcher
    reasons = isinstance(matcher, ReasoningMatcher) and not sequence.finished and matcher.close()
    if ended.set_running_or_notify_cancel():
        ended.set_result(reasons)
