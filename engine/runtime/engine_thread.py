"""`EngineThread`: the thread that loads one model and then runs its steps.

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
from engine.observability.counters import EngineCounters
from engine.runtime.assembly import PoolFactory, build_pipeline, build_pool, install
from engine.runtime.closing import close_pipeline
from engine.runtime.intake import attach_matcher
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.live_requests import LiveRequests
from engine.runtime.loading import (
    ExecutorFactory,
    ModelOpener,
    Opened,
    describe,
    open_with_headers,
)
from engine.runtime.snapshot_publisher import SnapshotPublisher
from engine.runtime.thread_priority import lower_thread_priority
from engine.runtime.wakeups import WakeHub
from engine.step.calibration import Calibration
from engine.step.pipeline import Pipeline

if TYPE_CHECKING:
    from engine.text.tokenizer import Tokenizer

_log = logging.getLogger(__name__)

_PROGRESS_STEP = 0.01
CALIBRATION_IDLE_S = 0.25
"""Calibration steps run after no command has arrived for this long."""


class _LoadingStoppedError(Exception):
    """Raised from the progress callback to stop a load when the engine is shut down."""


class EngineThread:
    """Loads and runs one model.

    Attributes:
        requests: the table of live requests.
        hub: wakes readers.
        counters: counts requests, tokens and steps.
        publisher: publishes snapshots and block maps.
        opened: the model with its headers read; None before that, or if it failed.
        compiler: compiles grammars; set just before `opened`.
        pipeline: runs the requests; set just before `opened`.
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
        calibration: Calibration,
        clock: Callable[[], float],
        on_stop: Callable[[], None],
    ) -> None:
        """Create the thread; when it ends, it calls `on_stop` last."""
        self._config = config
        self._lifecycle = lifecycle
        self._events = events
        self._executor_factory = executor_factory
        self._model_opener = model_opener
        self._pool_factory = pool_factory
        self._make_compiler = grammar_compiler
        self._calibration = calibration
        self._clock = clock
        self._on_stop = on_stop

        self._waiting = RequestQueue(config.max_queue)
        self.requests = LiveRequests(lifecycle, self._waiting)
        self.hub = WakeHub()
        self.counters = EngineCounters()
        self.publisher = SnapshotPublisher(
            lifecycle, self.requests, self.counters, config.scheduling, clock
        )
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._headers_settled = threading.Event()  # headers were read, or loading failed
        self._settled = threading.Event()  # no longer loading
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._compilations: dict[Sequence, Future[CompiledGrammar]] = {}

        # Written by the thread alone.
        self.opened: Opened | None = None
        self.compiler: GrammarCompiler | None = None
        self.pipeline: Pipeline | None = None
        self.core_yielder: CoreYielder | None = None
        self._stopping = False

    # ---- any thread ----

    @property
    def started(self) -> bool:
        """Whether `start` was called."""
        return self._thread is not None

    def start(self) -> None:
        """Start the thread, which loads the model. Call it once."""
        if self._thread is not None:
            raise RuntimeError("the engine was already started")
        self._thread = threading.Thread(target=self._run, name="pravaha-engine", daemon=True)
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

    def switch(self, scheduling: Scheduling) -> None:
        """Use another policy and batch former from the next step boundary on."""
        self.publisher.scheduling = scheduling
        self.send(partial(self._switch, scheduling))

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

    def wait_opened(self) -> Opened:
        """Wait until the model's headers are read.

        Raises:
            EngineUnavailable: not started, running in another process, or the model is unusable.
        """
        if self._thread is None:
            raise EngineUnavailable("The engine was not started.")
        if os.getpid() != self._pid:  # threads are not copied by fork()
            raise EngineUnavailable("The engine runs in the process that this one was forked from.")
        self._headers_settled.wait()
        if self.opened is None:
            raise self._lifecycle.unavailable()
        return self.opened

    def wait_settled(self, timeout: float | None) -> bool:
        """Wait until loading succeeded, failed or was stopped; False after `timeout` seconds."""
        return self._settled.wait(timeout)

    # ---- the thread ----

    def _run(self) -> None:
        try:
            lower_thread_priority(
                self._config.niceness
            )  # before the executor starts its own threads
            self._serve(self._load())
        except _LoadingStoppedError:
            pass
        except BaseException as error:  # a Rust panic is not an Exception
            # An unusable model is not a defect of the engine: callers get the error; nothing is logged.
            if self._settled.is_set() or not isinstance(error, PravahaError):
                _log.exception("The engine failed.")
            self._lifecycle.fail(str(error) or type(error).__name__)
        finally:
            self._close_down()

    def _load(self) -> Pipeline:
        opened = open_with_headers(self._config, self._model_opener)
        model = opened.model
        pool = build_pool(self._config, opened, self._pool_factory)
        pipeline = self.pipeline = build_pipeline(
            self._config,
            opened,
            pool,
            self._waiting,
            scheduling=self.publisher.scheduling,
            counters=self.counters,
            events=self._events,
            clock=self._clock,
        )
        self.compiler = self._make_compiler(model.tokenizer, model.spec.vocab_size)
        self.opened = opened
        self._headers_settled.set()
        if self._config.generation_config == "auto" and model.generation_defaults.dry_multiplier:
            # Nearly every request will use DRY: its first one need not wait 50 ms for the vocabulary.
            breakers = SamplingParams().dry_sequence_breakers
            threading.Thread(
                target=opened.breakers.compile,
                args=(breakers,),
                name="pravaha-breakers",
                daemon=True,
            ).start()
        executor = self._executor_factory(
            model,
            self._config,
            num_blocks=opened.kv_cache.num_blocks,
            max_model_len=opened.max_model_len,
            progress=partial(self._on_progress, pipeline),
        )
        install(executor, pipeline, pool, self._config)
        self.core_yielder = executor if isinstance(executor, CoreYielder) else None
        self.publisher.model_info = describe(self._config, opened, executor.info)
        self.publisher.loading_progress = 1.0
        self._lifecycle.move_to(EngineState.READY, only_from=(EngineState.LOADING,))
        self._publish()
        self._settled.set()
        return pipeline

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

    def _serve(self, pipeline: Pipeline) -> None:
        while not self._stopping:
            idle = not pipeline.has_work
            saving = idle and self._save_idle(pipeline)
            if idle and not saving:
                self._await_command(pipeline)
            self._run_commands()
            if pipeline.has_finished:  # deliver aborts before the next step
                self.publish_and_wake(pipeline)
            elif idle:
                self._publish()
            if pipeline.has_work and not self._stopping:
                pipeline.step()
                self.publish_and_wake(pipeline)

    def _await_command(self, pipeline: Pipeline) -> None:
        """Block until a command arrives; run pending calibration steps while none does."""
        while self._calibration.pending:
            try:
                self._commands.get(timeout=CALIBRATION_IDLE_S)()
            except Empty:
                pipeline.calibrate(self._calibration)
                self._publish()
            else:
                return
        self._commands.get()()

    def _save_idle(self, pipeline: Pipeline) -> bool:
        """Let the swap tier save blocks while the engine is idle; False when it has none to save."""
        tier = pipeline.blocks.tier
        if tier is None or not tier.save_idle():
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
        if sequence.finished or self.pipeline is None:
            return
        try:
            attach_matcher(sequence, compilation.result())
            sequence.move_to(SequenceState.WAITING)
            self._waiting.put(sequence)
        except PravahaError as error:
            self.pipeline.finish(sequence, failed(str(error)))
        except (Exception, CancelledError) as error:
            _log.exception("The compilation of a grammar failed.")
            message = f"The grammar could not be built: {error or type(error).__name__}."
            self.pipeline.finish(sequence, failed(message))

    def _abort(self, sequence: Sequence) -> None:
        compilation = self._compilations.get(sequence)
        if compilation is not None:
            compilation.cancel()
        if self.pipeline is not None:
            self.pipeline.abort(sequence)

    def _switch(self, scheduling: Scheduling) -> None:
        if self.pipeline is not None:
            self.pipeline.scheduler.switch(scheduling)

    def _stop(self) -> None:
        self._stopping = True

    def _close_down(self) -> None:
        """Finish every request, free the pipeline's memory and publish the final state."""
        error = self._lifecycle.error
        self._lifecycle.move_to(
            EngineState.DRAINING, only_from=(EngineState.LOADING, EngineState.READY)
        )  # from here on no request is accepted
        pipeline = self.pipeline
        if pipeline is not None:
            close_pipeline(pipeline, self.requests.all(), error and error[0])
        if self.compiler is not None:
            self.compiler.close()
        self._lifecycle.move_to(EngineState.STOPPED, only_from=(EngineState.DRAINING,))
        self._publish()
        self._headers_settled.set()
        self._settled.set()
        if pipeline is not None:
            self.publish_and_wake(pipeline)
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
        if self.publisher.publish(self.pipeline):
            self.hub.run_callbacks()  # after publishing, so that readers see the new state


def _nothing() -> None:
    """The command that only wakes an idle engine."""
