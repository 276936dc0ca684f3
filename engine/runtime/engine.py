"""`AsyncPravahaEngine`: the public interface to a loaded model, which can be replaced by another.

The engine owns one thread (`engine.runtime.engine_thread`), which loads models and runs their steps.
Callers never wait for a step: they put requests into a bounded queue, read output from mailboxes
(`RequestHandle`) and state from a frozen snapshot.
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.api.available_model import AvailableModel
from engine.api.block_detail import MAX_CHAINS, BlockDetail, PrefixTree
from engine.api.config import EngineConfig
from engine.api.decisions import (
    MARGIN,
    MIN_LABEL_MASS,
    DecisionQuestion,
    DecisionRules,
    Decisions,
)
from engine.api.embeddings import Embeddings
from engine.api.errors import InvalidRequest, PravahaError
from engine.api.event_ring import EventBatch, EventRing
from engine.api.events import EventBus, RequestQueued
from engine.api.fork_price import ForkPrice
from engine.api.grammar import Grammar
from engine.api.image import Image, PlacedImage
from engine.api.request import Request, SamplingParams, new_request_id
from engine.api.request_status import MAX_STATUSES, RequestStatus
from engine.api.residency import Residency
from engine.api.scheduling import Scheduling
from engine.api.snapshot import (
    BlockMap,
    EngineSnapshot,
    EngineState,
    ModelInfo,
)
from engine.api.step_view import PlannedStep, StepEntry
from engine.batch.sequence import Sequence, SequenceState
from engine.decisions.calibration import Calibration
from engine.embedding.embedder import Embedder
from engine.executors.image_placing import place_images
from engine.grammar.compiler import CompiledGrammar, GrammarCompiler
from engine.memory.image_identity import identity_tokens
from engine.memory.kv_identity import NO_CACHE_SALT
from engine.models.spec import ModelSpec
from engine.models.store import ModelStore
from engine.models.transformers_spec import TransformersSpec
from engine.runtime.assembly import PoolFactory, rust_pool
from engine.runtime.available_models import describe_installed
from engine.runtime.block_details import describe_block, describe_tree
from engine.runtime.closing import ExitHook
from engine.runtime.deciding import decide
from engine.runtime.engine_thread import CurrentModel, EngineThread
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
    FreeMemory,
    ModelOpener,
    free_memory,
    load_executor,
    memory_after_unloading,
    open_from_disk,
    pool_of,
    read_headers,
)
from engine.runtime.model_change import (
    CHANGE_DRAIN_S,
    MAX_CHANGE_DRAIN_S,
    ModelChange,
    NextModel,
)
from engine.runtime.request_handle import RequestHandle
from engine.runtime.request_table import build_request_table
from engine.step.calibration import PROBES, Probe
from engine.step.pipeline import Pipeline
from engine.text.detokenizer import Detokenizer

if TYPE_CHECKING:
    from engine.observability.metrics import MetricsCollector
    from engine.text.tokenizer import Tokenizer

_log = logging.getLogger(__name__)


def _checked_drain(seconds: float) -> float:
    """The seconds; raises `InvalidRequest` unless they are a number in [0, `MAX_CHANGE_DRAIN_S`]."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds <= MAX_CHANGE_DRAIN_S:
        raise InvalidRequest(
            f"drain_seconds must be between 0 and {MAX_CHANGE_DRAIN_S:.0f}, not {seconds!r:.40}.",
            param="drain_seconds",
        )
    return seconds


def _random_seed() -> int:
    return secrets.randbits(64)


class _NewRequest(NamedTuple):
    """A valid request that is not queued yet; `compilation` is its grammar's, while it runs."""

    sequence: Sequence
    detokenizer: Detokenizer
    compilation: "Future[CompiledGrammar] | None"


class AsyncPravahaEngine:
    """Runs one model at a time for many callers. Every public method may be called from any thread.

    Attributes:
        events: publishes events about requests and the engine.
        embedder: the embedding model, loaded on first use.
        calibration: what the loaded model says about texts without content, for `decide`.
    """

    def __init__(
        self,
        config: EngineConfig,
        *,
        executor_factory: ExecutorFactory = load_executor,
        model_opener: ModelOpener = open_from_disk,
        pool_factory: PoolFactory = rust_pool,
        embedder: Embedder | None = None,
        models: ModelStore | None = None,
        find_free_memory: FreeMemory = free_memory,
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
            models: the installed models, for `load_model`; None takes the user's.
            find_free_memory: returns the free bytes for a model.
            grammar_compiler: makes the compiler from (tokenizer, vocabulary size).
            clock: monotonic seconds.
            draw_seed: returns a seed in [0, 2**64) for a request without one.
            probes: calibration steps of the step-time model, run once the engine is loaded and idle.
        """
        self.events = EventBus()
        self._event_ring = EventRing()
        self._event_ring.follow(self.events)
        self.embedder = embedder or Embedder(threads=config.threads, dispatch=config.dispatch)
        self.calibration = Calibration()
        self._models = models or ModelStore()
        self._find_free = find_free_memory
        self._open_model = model_opener
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
            find_free_memory=find_free_memory,
            probes=probes,
            clock=clock,
            on_stop=self._on_stop,
        )

    def _on_stop(self) -> None:
        self.embedder.close()
        self._exit_hook.disarm()

    # ---- lifecycle ----

    def start(self, *, without_model: str | None = None) -> None:
        """Start the engine's thread, which loads the model. Returns at once; call it once.

        If loading fails, the engine has no model, its state is `unloaded` and `last_error` says why: call
        `load_model`.

        Args:
            without_model: why there is no model to load, for `last_error`; None loads that of `config`.
        """
        self._exit_hook.arm()
        self._thread.start(without_model=without_model)

    def wait_ready(self, timeout: float | None = None) -> None:
        """Block until the model is loaded.

        Raises:
            EngineUnavailable: loading failed, or the engine was shut down first.
            TimeoutError: it is still loading after `timeout` seconds.
        """
        if not self._thread.wait_settled(timeout):
            raise TimeoutError(f"{self.config.name} was not loaded after {timeout} s")
        self._lifecycle.require(EngineState.READY, EngineState.DRAINING)

    @property
    def config(self) -> EngineConfig:
        """The settings, with the path and name of the model that was loaded last."""
        return self._thread.config

    @property
    def store(self) -> ModelStore:
        """The models that are installed where the engine runs."""
        return self._models

    def check_memory_share(self) -> None:
        """Check the memory that `config` allows; reads headers, up to 0.3 s, if it does.

        Raises:
            ModelDoesNotFit: the model of `config` takes more.
            ModelError: it cannot be used.
        """
        if self.config.memory_bytes is not None:
            pool_of(read_headers(self.config, self._open_model), self.config, available=None)

    def check_fits(self, *, freed: int) -> None:
        """Check that the model of `config` would fit in memory if `freed` more bytes were free.

        Raises:
            ModelDoesNotFit: it would not.
            ModelError: it cannot be used.
        """
        headers = read_headers(self.config, self._open_model)
        free = self._find_free(headers.model, self.config)
        pool_of(headers, self.config, available=None if free is None else free + freed)

    @property
    def started(self) -> bool:
        """Whether `start` was called."""
        return self._thread.started

    @property
    def is_idle(self) -> bool:
        """Whether no request is live."""
        return self._thread.requests.empty

    def is_live(self, request_id: str) -> bool:
        """Whether a request with this id waits or runs."""
        return self._thread.requests.get(request_id) is not None

    @property
    def memory_bytes(self) -> int:
        """Bytes that the model's weights, work buffers and KV pool take; 0 without a model."""
        current = self._thread.current
        return 0 if current is None else current.opened.total_bytes

    def models(self) -> list[AvailableModel]:
        """The installed models and whether each can be loaded. Reads their headers: takes up to 0.3 s each.

        Raises:
            ModelError: a record of the store is damaged.
        """
        current = self._thread.current
        loaded = None if current is None else current.opened
        return [
            describe_installed(model, self.config, self._open_model, loaded, self._find_free)
            for model in self._models.list()
        ]

    def load_model(
        self, model: str | Path | None = None, *, drain_s: float = CHANGE_DRAIN_S
    ) -> None:
        """Replace the model by another. Returns once the model's headers are read; see `wait_ready`.

        New requests are refused from now on. Running and waiting ones have `drain_s` seconds to finish;
        those that have not then fail with an error that names the change. Then the old model and its KV
        blocks are freed, which includes the closing of its swap tier, and the new one is loaded with the
        engine's other settings; `EngineSnapshot.next_model` and `loading_progress` show it. If loading
        fails, the engine has no model, its state is `unloaded` and `last_error` says why: load one again.

        A second call for the same model, while the first waits for requests, can shorten the wait.

        Args:
            model: an installed model's name, or the path of any model; None loads the model of `config`,
                again if it is loaded.
            drain_s: seconds that running requests get, at most `MAX_CHANGE_DRAIN_S`; 0 ends them at the
                next step boundary.

        Raises:
            InvalidRequest: `drain_s` is out of range, or the model is loaded already.
            ModelNotFound: there is no such model.
            ModelError: it cannot be used, or does not fit in memory; the current model was kept.
            EngineUnavailable: loading or changing the model already, or shutting down.
        """
        deadline = self._clock() + _checked_drain(drain_s)
        settings = self.config
        config = settings if model is None else self._config_for(model)
        life = self._lifecycle
        if life.next_model == config.name and life.state is EngineState.DRAINING:
            self._thread.hasten_change(deadline)
            return
        life.require(EngineState.READY, EngineState.UNLOADED)
        loaded = self._thread.current
        same = (settings.model, settings.name) == (config.model, config.name)
        if model is not None and loaded is not None and same:
            raise InvalidRequest(f"{config.name} is loaded already.", param="model")
        headers = read_headers(config, self._open_model)
        available = memory_after_unloading(
            headers.model, config, None if loaded is None else loaded.opened, self._find_free
        )
        pool_of(headers, config, available=available)
        self._thread.change_model(ModelChange(NextModel(config, headers), deadline))

    def _config_for(self, model: str | Path) -> EngineConfig:
        """The settings with another model, which is one of the store if it is given by name."""
        found = self._models.installed(model) if isinstance(model, str) else self._models.get(model)
        return replace(self.config, model=found.path, name=found.name)

    def unload_model(self, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        """Free the model and its KV blocks; the engine runs on without one. Returns at once.

        Requests in flight are treated as by `load_model`; later ones are refused until a model is loaded.

        Raises:
            InvalidRequest: `drain_s` is out of range.
            EngineUnavailable: loading or changing the model, without one, or shutting down.
        """
        deadline = self._clock() + _checked_drain(drain_s)
        self._lifecycle.require(EngineState.READY)
        self._thread.change_model(ModelChange(None, deadline))

    def reopen_swap_tier(self) -> None:
        """Open the swap tier at the next step boundary, if another engine had its file until now."""
        self._thread.reopen_tier()

    def drain(self) -> None:
        """Accept no new requests from now on; accepted ones run to their finish. Returns at once."""
        self._lifecycle.drain()
        self._thread.drop_change()  # also wakes an idle engine, which publishes its new state

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

    def place_images(
        self, prompt_ids: Iterable[int], images: Iterable[Image]
    ) -> tuple[tuple[int, ...], tuple[PlacedImage, ...]]:
        """A prompt with the tokens of its images in place of its placeholders, and their places.

        Decodes the images on the caller's thread. Never waits for a step.

        Raises:
            InvalidRequest: as `engine.executors.image_placing.place_images`.
            EngineUnavailable: not started, or the model cannot be opened.
        """
        model = self._thread.wait_opened().opened.model
        return place_images(model, tuple(prompt_ids), tuple(images))

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
        return self._thread.wait_opened().compiler.build(grammar)

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

    def decide(
        self,
        text: str,
        questions: Iterable[DecisionQuestion],
        *,
        calibrate: bool = False,
        margin: float = MARGIN,
        min_label_mass: float = MIN_LABEL_MASS,
    ) -> Decisions:
        """Answer many questions about one text from probabilities of single tokens; nothing is generated.

        The text is computed once, each question's own tokens once, or twice if it has options. Blocks
        until all are computed: from a coroutine use `asyncio.to_thread`.

        Args:
            text: what the questions are about.
            questions: 1 to 400, made by `engine.api.decisions.predicate`, `choice` and `score`.
            calibrate: subtract what the model says about a text without content, except of scores.
            margin: the least difference of the two best probabilities of an answer that is not abstained.
            min_label_mass: the least probability of all labels of an answer that is not refused.

        Raises:
            InvalidRequest: the text is empty or too long, a value out of range, or the model's tokenizer
                has no tokens for labels.
            QueueFull: other requests fill the queue.
            EngineUnavailable: as `submit`, or the engine stopped meanwhile.
            ExecutorError: a row failed.
        """
        rules = DecisionRules(calibrate, margin, min_label_mass)
        return decide(self, text, questions, rules, self.calibration)

    def price(self, token_ids: Iterable[int]) -> ForkPrice:
        """The cost of a request with these tokens as its prompt and no cache salt, now.

        Never waits for a step.

        Raises:
            InvalidRequest: the tokens cannot be a prompt.
            EngineUnavailable: not started, or the model cannot be opened.
        """
        prompt, pipeline = self._path(token_ids, answer_room=1)
        size = pipeline.blocks.block_size
        cached, swapped = pipeline.blocks.lookup_prefix(prompt, NO_CACHE_SALT)
        tier = pipeline.blocks.tier
        return price_of(
            len(prompt),
            cached,
            size,
            pipeline.scheduler.work,
            swapped_blocks=swapped,
            swap_seconds=None if tier is None else tier.swap_in_seconds(swapped),
            state_bytes=pipeline.blocks.state_counts().slot_bytes,
        )

    def _enqueue(
        self, requests: Iterable[Request], *, parent: Sequence | None
    ) -> list[RequestHandle]:
        """Queue requests, all or none."""
        thread = self._thread
        current = thread.wait_opened()
        new: list[_NewRequest] = []
        try:
            for request in requests:
                previous = new[-1].sequence if new else None
                new.append(self._prepare(request, current, parent, previous))
            thread.requests.accept(*(one.sequence for one in new), model=current.opened)
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
        self,
        request: Request,
        current: CurrentModel,
        parent: Sequence | None,
        previous: Sequence | None,
    ) -> "_NewRequest":
        """Validate a request, start the compilation of its grammar, and look up its prefix."""
        opened = current.opened
        sequence, detokenizer = make_sequence(
            request,
            opened,
            now=self._clock(),
            draw_seed=self._draw_seed,
            parent=parent,
            choice_of=previous,
        )
        compilation = None
        vocab_size = opened.model.spec.vocab_size
        if request.sampling.grammar is None:
            attach_matcher(sequence, None, vocab_size=vocab_size)
        else:
            compilation = current.compiler.build(request.sampling.grammar)
            if compilation.done():
                attach_matcher(sequence, compilation.result(), vocab_size=vocab_size)
                compilation = None
            else:
                sequence.state = SequenceState.WAITING_FOR_GRAMMAR
        size = opened.kv_cache.block_size
        identity = identity_tokens(sequence.tokens, request.images, size)
        blocks = sum(current.pipeline.blocks.lookup_prefix(identity, sequence.cache_salt))
        sequence.record["cached_tokens_hint"] = blocks * size
        return _NewRequest(sequence, detokenizer, compilation)

    def abort(self, request_id: str) -> None:
        """Abort a request at the next step boundary; unknown ids are ignored."""
        sequence = self._thread.requests.get(request_id)
        if sequence is not None:
            self._thread.abort(sequence)

    def end_reasoning(self, request_id: str) -> "Future[bool]":
        """End a request's reasoning at the next step boundary.

        The future is False if there is no such request, it has no `ReasoningControl`, or it does not
        reason then.
        """
        sequence = self._thread.requests.get(request_id)
        if sequence is None:
            ended: Future[bool] = Future()
            ended.set_result(False)
            return ended
        return self._thread.end_reasoning(sequence)

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

    def now(self) -> float:
        """The current instant of the engine's clock, monotonic seconds."""
        return self._clock()

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

    def request_table(self, limit: int = MAX_STATUSES) -> tuple[RequestStatus, ...]:
        """The live requests, running ones first, built now on the caller's thread. Never waits.

        Args:
            limit: maximum number of requests; the last to arrive are left out.
        """
        pipeline = self._thread.pipeline
        if pipeline is None:
            return ()
        return build_request_table(self._thread.requests.all(), pipeline.table, limit)

    def block(self, block: int) -> BlockDetail | None:
        """What one KV block holds, read now on the caller's thread; None while the model is opened.

        Raises:
            InvalidRequest: the pool has no such block.
        """
        pipeline = self._thread.pipeline
        if pipeline is None:
            return None
        if not 0 <= block < pipeline.blocks.num_blocks:
            raise InvalidRequest(f"The pool has no block {block}.", param="block")
        return describe_block(
            block,
            pipeline.blocks,
            pipeline.table,
            decode=self._decode_all,
            last_used=self._thread.publisher.last_used(block),
        )

    def prefix_tree(self, limit: int = MAX_CHAINS) -> PrefixTree | None:
        """The prefix cache as at most `limit` chains; None while the model is opened. Never waits."""
        pipeline = self._thread.pipeline
        if pipeline is None:
            return None
        return describe_tree(pipeline.blocks, decode=self._decode_all, limit=limit)

    def _decode_all(self, token_ids: Iterable[int]) -> str:
        return self.tokenizer.decode(tuple(token_ids), skip_special=False)

    def residency(self, token_ids: Iterable[int]) -> Residency:
        """How much of a prompt is in the pool and in the swap tier, in whole blocks. Never waits.

        Raises:
            InvalidRequest: the tokens cannot be a prompt.
            EngineUnavailable: not started, or the model cannot be opened.
        """
        prompt, pipeline = self._path(token_ids)
        cached, swapped = pipeline.blocks.find_prefix(prompt, NO_CACHE_SALT)
        size = pipeline.blocks.block_size
        return Residency(len(prompt), len(cached) * size, swapped * size, tuple(cached.tolist()))

    def pin(self, token_ids: Iterable[int], *, pin_id: str) -> None:
        """Pin the cached blocks of a prefix at the next step boundary; a pin with this id is replaced.

        The event `PrefixPinned` tells how many blocks were pinned; see `engine.memory.pinned_prefixes`.

        Raises:
            InvalidRequest: the tokens cannot be a prompt.
            EngineUnavailable: not started, or the model cannot be opened.
        """
        prompt, pipeline = self._path(token_ids)
        self._thread.send(partial(pipeline.pin, pin_id, prompt))

    def session_waits(self, session: str, tool: str) -> None:
        """Tell what a session waits for after its last answer, at the next step boundary.

        Args:
            session: as in `Request`; unknown ones, and those that run again, are ignored.
            tool: the tool that the answer calls, or `engine.memory.pauses.PERSON`.
        """
        pipeline = self._thread.pipeline
        if pipeline is not None and pipeline.blocks.sessions is not None:
            self._thread.send(partial(pipeline.blocks.sessions.waits_for, session, tool))

    def unpin(self, pin_id: str) -> None:
        """End a pin at the next step boundary; unknown ids are ignored."""
        pipeline = self._thread.pipeline
        if pipeline is not None:
            self._thread.send(partial(pipeline.unpin, pin_id))

    def _path(
        self, token_ids: Iterable[int], *, answer_room: int = 0
    ) -> tuple[NDArray[np.int32], Pipeline]:
        """Validated tokens, with room for `answer_room` more, and the pipeline of the opened model."""
        current = self._thread.wait_opened()
        prompt = prompt_array(tuple(token_ids), current.opened, answer_room=answer_room)
        return prompt, current.pipeline

    def recent_steps(self, since: int) -> tuple[StepEntry, ...]:
        """The last executed steps after step number `since`, oldest first. Never waits."""
        pipeline = self._thread.pipeline
        return () if pipeline is None else pipeline.steps.since(since)

    def planned_step(self) -> PlannedStep | None:
        """The plan of a recent step, or None before the first one that was asked for.

        The call requests the plan of the next step; without a request the engine describes none.
        """
        pipeline = self._thread.pipeline
        return None if pipeline is None else pipeline.steps.plan()

    def events_since(self, since: int) -> EventBatch:
        """The latest events from number `since` on; see `engine.api.event_ring`. Never waits."""
        return self._event_ring.since(since)

    @property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer; waits for the headers to be read.

        Raises:
            EngineUnavailable: not started, or the model cannot be opened.
        """
        return self._thread.wait_opened().opened.model.tokenizer

    @property
    def spec(self) -> ModelSpec | TransformersSpec:
        """The model's shapes; waits for the headers to be read.

        Raises:
            EngineUnavailable: not started, or the model cannot be opened.
        """
        return self._thread.wait_opened().opened.model.spec

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
            model_name=lambda: self.config.name,
            snapshot=self.snapshot,
            counters=self._thread.counters.state,
        )

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Call back when a mailbox goes from empty to non-empty or the engine's state changes.

        The callback may run on any thread and must return at once; it should cause a drain soon after.
        """
        self._thread.hub.add_callback(callback)
