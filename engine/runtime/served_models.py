"""`ServedModels`: the models that a server offers by name, of which several can be loaded.

Each loaded model has an engine of its own: a thread, a KV pool and counters. One further thread, started by
the first change, makes all changes of the set: it loads, reloads and unloads one model at a time.

Invariants:

* A model that a request uses is not unloaded unless somebody asked for just that (`unload`).
* At most `max_loaded` models are loaded, but for the old engine of a model that is reloaded, while its
  requests finish. The least recently used idle model makes room for another; without one, the load waits.
* A load that only requests wait for is dropped when the last of them has left.
* In main memory the models together take no more than what was free when the server started.

`use` never waits: a model that is not loaded is an exception that says what to wait for.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.api.config import EngineConfig
from engine.api.errors import (
    EngineUnavailable,
    ModelDoesNotFit,
    ModelError,
    ModelNotFound,
    PravahaError,
)
from engine.api.keep_alive import FOR_EVER
from engine.api.snapshot import EngineSnapshot, EngineState
from engine.embedding.embedder import Embedder
from engine.memory.host import available_memory
from engine.models.store import ModelStore
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.loading import FreeMemory, free_memory, is_on_gpu
from engine.runtime.served_model import (
    ChangeKind,
    ModelChanging,
    ModelLease,
    ModelLoading,
    ServedModel,
)

if TYPE_CHECKING:
    from engine.executors.open_model import OpenModel

_log = logging.getLogger(__name__)

EngineFactory = Callable[[EngineConfig, FreeMemory], AsyncPravahaEngine]
"""Makes an engine that was not started."""

NOT_LOADED = "The model is not loaded."
SHUTTING_DOWN = "The server is shutting down."
_POLL_S = 0.05
"""Interval at which the end of requests without a lease, such as those of a lost client, is noticed."""


class ServedModels:
    """The models of one server. Every method may be called from any thread.

    Attributes:
        primary: the model of requests that name none. Its engine object stays the same.
        aliases: further names, each with the name of its model.
        max_loaded: number of models that may be loaded at a time.
        any_installed: whether every installed model is served, and loaded when a request names it.
    """

    def __init__(
        self,
        configs: Sequence[EngineConfig],
        make_engine: EngineFactory,
        *,
        aliases: Mapping[str, str] | None = None,
        max_loaded: int | None = None,
        any_installed: bool = False,
        shares: Mapping[str, int] | None = None,
        keep_alive_s: float = FOR_EVER,
        total_memory: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Offer models; nothing is loaded before `start`.

        Args:
            configs: the models that are loaded at the start, at least one; the first is the primary one.
            make_engine: makes the engine of each.
            aliases: further names, each with the name of its model.
            max_loaded: number of models that may be loaded at a time; None for that of `configs`.
            any_installed: serve every installed model.
            shares: most bytes of models, by their names.
            keep_alive_s: seconds after its last use for which a model stays loaded.
            total_memory: bytes that all models together may take in main memory; None for what is free now.
            clock: monotonic seconds.

        Raises:
            ModelError: two models have one name, or the shares are more than there is memory.
        """
        self.aliases = dict(aliases or {})
        self.max_loaded = len(configs) if max_loaded is None else max_loaded
        self.any_installed = any_installed
        self._shares = dict(shares or {})
        self._keep_alive_s = keep_alive_s
        self._make_engine = make_engine
        self._clock = clock
        self._may_unload = True
        self._changed = threading.Condition(threading.RLock())  # guards what follows
        self._changes: deque[ModelChanging] = deque()
        self._retiring: list[AsyncPravahaEngine] = []
        self._embedder_expiry = FOR_EVER
        self._current: ModelChanging | None = None  # being made
        self._thread: threading.Thread | None = None
        self._closed = False
        self._total = _memory_now() if total_memory is None else total_memory
        self._check_shares()
        self._models: dict[str, ServedModel] = {}
        for config in configs:
            if config.name in self._models:
                raise ModelError(f"Two models are called {config.name}: each needs its own name.")
            self._models[config.name] = self._new_model(config)
        self._num_named = len(self._models)
        self._started: list[ModelChanging] = []
        self.primary = next(iter(self._models.values()))
        self._check_aliases()

    @classmethod
    def single(
        cls,
        engine: AsyncPravahaEngine,
        *,
        may_unload: bool = True,
    ) -> "ServedModels":
        """The one model of an engine that others start and shut down, and whose model they may change.

        Args:
            engine: the engine.
            may_unload: whether the model may be unloaded for being idle: not where a person works with it.
        """
        models = cls([engine.config], lambda config, free: engine, total_memory=0)
        models._may_unload = may_unload
        return models

    # ---- what there is ----

    @property
    def is_single(self) -> bool:
        """Whether there is one model only, which another may replace in its engine."""
        return len(self._models) == 1 and self.max_loaded == 1 and not self.any_installed

    def all(self) -> list[ServedModel]:
        """The models that were named at the start, and those that were loaded since."""
        with self._changed:
            return list(self._models.values())

    def find(self, name: str | None) -> ServedModel | None:
        """The model of a name or an alias, None for the primary; None if no such model was loaded yet."""
        with self._changed:
            if name is None:
                return self.primary
            name = self.resolved(name)
            if self.is_single:  # its engine's model may have been changed
                return self.primary if name == self.primary.name else None
            return self._models.get(name)

    def served(self, name: str) -> ServedModel:
        """The model of a name or an alias; one that is installed is added, and not loaded.

        Raises:
            ModelNotFound: no such model is served.
            ModelError: its record is damaged.
        """
        with self._changed:
            return self._get(name)

    def snapshot(self, model: ServedModel) -> EngineSnapshot:
        """That of a model's engine, or what is coming: a load, a request that loads it, or its end.

        A model that waits to be loaded is `loading`; one that is unloaded when its requests have finished is
        `draining`.
        """
        snapshot = model.engine.snapshot()
        change = model.change
        if change is not None and change.kind is ChangeKind.UNLOAD and snapshot.model is not None:
            return replace(snapshot, state=EngineState.DRAINING)
        if change is not None and change.kind is not ChangeKind.UNLOAD and snapshot.model is None:
            return replace(
                snapshot,
                state=EngineState.LOADING,
                loading_progress=change.progress,
                next_model=model.name,
                last_error=None,
            )
        if self.is_single or snapshot.model is not None:
            return snapshot
        if not model.engine.started or snapshot.state is EngineState.UNLOADED:
            error = None if snapshot.last_error == NOT_LOADED else snapshot.last_error
            return replace(
                snapshot,
                state=EngineState.UNLOADED,
                loading_progress=0.0,
                on_demand=model.name,
                last_error=error,
            )
        return snapshot

    def names(self) -> list[str]:
        """The names of all models that requests may name, without aliases.

        Reads the store if every installed model is served.

        Raises:
            ModelError: a record of the store is damaged.
        """
        names = [one.name for one in self.all()]
        if self.any_installed:
            embedder = self.embedder.name
            installed = (one.name for one in self._store.list())
            names += [name for name in installed if name not in names and name != embedder]
        return names

    def resolved(self, name: str) -> str:
        """The name that an alias stands for, or the name itself."""
        return self.aliases.get(name, name)

    def aliases_of(self, name: str) -> list[str]:
        """The further names of a model."""
        return [alias for alias, model in self.aliases.items() if model == name]

    def engine_of(self, request_id: str, name: str | None = None) -> AsyncPravahaEngine:
        """The engine in which a request is live; that of the model if none has it.

        Args:
            request_id: the request.
            name: the name of its model; None looks in all, the primary one first.
        """
        with self._changed:
            model = self.find(name) or self.primary
            engines = self._engines()
        if name is not None:
            engines = [one for one in engines if one.config.name == model.name]
        return next((one for one in engines if one.is_live(request_id)), model.engine)

    @property
    def embedder(self) -> Embedder:
        """The embedding model, which also reranks."""
        return self.primary.engine.embedder

    # ---- use ----

    def use(self, name: str | None = None, *, keep_alive_s: float | None = None) -> ModelLease:
        """Take a lease of a model for a request; `release` it when the answer is sent. Never waits.

        Of a model that is alone and was not loaded, or unloaded by request, the lease is given too: its
        engine says why it takes no requests.

        Args:
            name: a name or an alias; None for the primary model.
            keep_alive_s: how long the model stays loaded after this and later requests; None changes nothing.

        Raises:
            ModelNotFound: no such model is served.
            ModelLoading: it is not loaded, but will be.
            ModelError: it cannot be used.
        """
        with self._changed:
            model = self._get(name)
            if keep_alive_s is not None:
                model.keep_alive_s = keep_alive_s
            change = model.change
            is_loaded = change is None and model.is_loaded
            if is_loaded:
                model.unloaded_idle = False
            if is_loaded or (change is None and not self._loads_on_demand(model)):
                return self._lease(model, model.engine)
            if change is None or change.kind is ChangeKind.UNLOAD:
                change = self._enqueue(ModelChanging(model, ChangeKind.LOAD, for_requests=True))
            raise ModelLoading(change, self._lease(model, None))

    def release(self, lease: ModelLease) -> None:
        """End a lease. Idempotent."""
        with self._changed:
            model = lease.model
            if lease not in model.leases:
                return
            model.leases.discard(lease)
            model.last_used = self._clock()
            self._changed.notify_all()
            if self._may_unload and model.keep_alive_s != FOR_EVER:
                self._ensure_thread()

    def set_keep_alive(self, name: str | None, seconds: float) -> None:
        """Set for how long a model stays loaded after its last use.

        Raises:
            ModelNotFound: no such model is served.
            ModelError: it cannot be used.
        """
        with self._changed:
            self._get(name).keep_alive_s = seconds
            if self._may_unload and seconds != FOR_EVER:
                self._ensure_thread()
            self._changed.notify_all()

    def use_embedder(self, keep_alive_s: float | None = None) -> None:
        """Note that the embedding model was used until now, and for how long it stays loaded."""
        with self._changed:
            seconds = self._keep_alive_s if keep_alive_s is None else keep_alive_s
            self._embedder_expiry = self._clock() + seconds
            if seconds != FOR_EVER:
                self._ensure_thread()
            self._changed.notify_all()

    # ---- changes ----

    def start(self) -> None:
        """Begin to load the models of the start, as many as may be loaded, one after another."""
        if self.is_single:
            self.primary.engine.start()
            return
        with self._changed:
            for model in self.started():
                self._started.append(self._enqueue(ModelChanging(model, ChangeKind.LOAD)))

    def started(self) -> list[ServedModel]:
        """The models that `start` loads."""
        with self._changed:
            return list(self._models.values())[: min(self.max_loaded, self._num_named)]

    def wait_started(self, model: ServedModel) -> None:
        """Block until a model that `start` loads is loaded.

        Raises:
            PravahaError: it cannot be loaded; the message names it.
        """
        change = next((one for one in self._started if one.model is model), None)
        if change is None:
            model.engine.wait_ready()
            return
        try:
            change.finished.result()
        except ModelError as error:
            raise EngineUnavailable(f"{model.name} could not be loaded: {error}") from error

    def load(self, name: str) -> ModelChanging:
        """Begin to load a model; one that is loaded is left as it is.

        Raises:
            ModelNotFound: no such model is served.
            ModelError: it cannot be used.
        """
        with self._changed:
            model = self._get(name)
            change = model.change
            if change is None or change.kind is ChangeKind.UNLOAD:
                return self._enqueue(ModelChanging(model, ChangeKind.LOAD))
            change.for_requests = False
            return change

    def reload(self, name: str, *, drain_s: float | None = None) -> ModelChanging:
        """Begin to load a model anew from its files. No request is dropped unless it outlasts `drain_s`.

        Where memory allows it, the new one is loaded beside the old one, which finishes its requests; if that
        fails, the old one stays. Otherwise, and always for the primary model, new requests wait until the
        running ones have finished and the model is loaded again.

        Args:
            name: its name or an alias.
            drain_s: seconds that running requests get at most; None for no limit.

        Raises:
            ModelNotFound: no such model is served.
            ModelError: it cannot be used.
            EngineUnavailable: it is being changed already.
        """
        with self._changed:
            model = self._get(name)
            self._check_unchanging(model)
            kind = ChangeKind.RELOAD
            change = ModelChanging(model, kind, drain_s)
            return self._enqueue(change, blocks=model is self.primary)

    def unload(self, name: str, *, drain_s: float) -> ModelChanging:
        """Begin to unload a model; requests that name it later load it again.

        Args:
            name: its name or an alias.
            drain_s: seconds that running requests get; those that have not finished then fail.

        Raises:
            ModelNotFound: no such model is served.
            ModelError: it cannot be used.
            EngineUnavailable: it is being changed already, or not loaded.
        """
        with self._changed:
            model = self._get(name)
            self._check_unchanging(model)
            if not model.is_loaded:
                raise EngineUnavailable(NOT_LOADED)
            return self._enqueue(ModelChanging(model, ChangeKind.UNLOAD, drain_s))

    def close(self) -> None:
        """Shut all engines down and end pending changes. Idempotent."""
        with self._changed:
            self._closed = True
            engines = self._engines()
            self._changed.notify_all()
            thread = self._thread
        for engine in engines:
            engine.shutdown()
        if thread is not None:
            thread.join()

    # ---- within the lock ----

    def _get(self, name: str | None) -> ServedModel:
        """The model of a name; one that is installed is added.

        Raises:
            ModelNotFound: no such model is served.
            ModelError: its record is damaged.
        """
        found = self.find(name)
        if found is not None:
            return found
        name = self.resolved(name or "")
        if self.any_installed and name != self.embedder.name:
            with suppress(ModelNotFound):
                installed = self._store.installed(name)
                if installed.name in self._models:  # names are compared without case
                    return self._models[installed.name]
                settings = self.primary.engine.config
                config = replace(
                    settings, model=installed.path, name=installed.name, draft_model=None
                )
                self._models[installed.name] = self._new_model(config)
                return self._models[installed.name]
        served = ", ".join(repr(one.name) for one in self._models.values())
        raise ModelNotFound(f"There is no model {name[:80]!r} here; this server has {served}.")

    def _new_model(self, config: EngineConfig) -> ServedModel:
        share = self._shares.get(config.name)
        if share is not None:
            config = replace(config, memory_bytes=share)
        return ServedModel(self._make_engine(config, self._find_free), self._keep_alive_s)

    def _engines(self) -> list[AsyncPravahaEngine]:
        """The engines of all models, and those that a reload loads or replaces."""
        return [one.engine for one in self._models.values()] + self._retiring

    def _others(self, model: ServedModel) -> list[ServedModel]:
        return [one for one in self._models.values() if one is not model]

    def _lease(self, model: ServedModel, engine: AsyncPravahaEngine | None) -> ModelLease:
        lease = ModelLease(model, engine)
        model.leases.add(lease)
        return lease

    def _loads_on_demand(self, model: ServedModel) -> bool:
        return model.unloaded_idle or not self.is_single

    def _check_unchanging(self, model: ServedModel) -> None:
        changing = [one.model for one in (self._current, *self._changes) if one is not None]
        if model.change is not None or model in changing:
            raise EngineUnavailable(f"The model {model.name} is being changed already.")

    def _enqueue(self, change: ModelChanging, *, blocks: bool = True) -> ModelChanging:
        """Put a change into the queue; requests wait for it if it `blocks`."""
        if self._closed:
            raise EngineUnavailable(SHUTTING_DOWN)
        if blocks:
            change.model.change = change
        self._changes.append(change)
        self._ensure_thread()
        self._changed.notify_all()
        return change

    def _ensure_thread(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="pravaha-models", daemon=True)
            self._thread.start()

    # ---- the thread ----

    def _run(self) -> None:
        while (change := self._next()) is not None:
            self._carry_out(change)

    def _carry_out(self, change: ModelChanging) -> None:
        """Make a change and finish it, with its error if it fails."""
        try:
            self._make(change)
        except PravahaError as error:
            self._finish(change, error)
        except Exception as error:
            _log.exception("Changing the model %s failed.", change.model.name)
            self._finish(change, EngineUnavailable(str(error) or type(error).__name__))
        else:
            self._finish(change, None)

    def _next(self) -> ModelChanging | None:
        """Wait for a change, asked for or of an idle model; None when closed."""
        with self._changed:
            while not self._closed:
                if self._changes:
                    self._current = self._changes.popleft()
                    return self._current
                now = self._clock()
                if now >= self._embedder_expiry:
                    self._unload_embedder()
                expired = next((one for one in self._idle() if self._expiry(one) <= now), None)
                if expired is not None:
                    expired.change = ModelChanging(expired, ChangeKind.UNLOAD, None)
                    return expired.change
                self._changed.wait(self._until_expiry(now))
            for change in self._changes:
                change.finish(EngineUnavailable(SHUTTING_DOWN))
            self._changes.clear()
            return None

    def _until_expiry(self, now: float) -> float | None:
        """Seconds until a model may have to be unloaded; None if none will be without a notification."""
        expiries = [self._embedder_expiry]
        for model in self._models.values():
            if model.keep_alive_s == FOR_EVER or model.change is not None or model.leases:
                continue  # a release notifies
            if model.is_loaded:
                expiries.append(max(self._expiry(model), now + _POLL_S))
        soonest = min(expiries)
        return None if soonest == FOR_EVER else max(0.0, soonest - now)

    def _expiry(self, model: ServedModel) -> float:
        return model.last_used + model.keep_alive_s if self._may_unload else FOR_EVER

    def _idle(self) -> list[ServedModel]:
        """The loaded models that no request uses, the least recently used first."""
        idle = [
            one
            for one in self._models.values()
            if one.change is None and not one.in_use and one.is_loaded
        ]
        return sorted(idle, key=lambda one: one.last_used)

    def _unload_embedder(self) -> None:
        self._embedder_expiry = FOR_EVER
        if self.embedder.loaded:
            with suppress(PravahaError):  # closed, or busy: then it is used again
                self.embedder.unload()

    def _make(self, change: ModelChanging) -> None:
        if change.kind is ChangeKind.UNLOAD:
            self._unload(change)
        elif change.kind is ChangeKind.LOAD or not change.model.is_loaded:
            self._load(change)
        elif change.model is self.primary:
            self._reload_in_place(change)
        else:
            self._reload_beside(change)

    def _finish(self, change: ModelChanging, error: BaseException | None) -> None:
        with self._changed:
            model = change.model
            model.last_used = self._clock()
            if change.kind is ChangeKind.UNLOAD and error is None:
                model.unloaded_idle = change.drain_s is None or not self.is_single
            if model.change is change:
                model.change = None
            if self._current is change:
                self._current = None
            self._changed.notify_all()
        change.finish(error)

    def _load(self, change: ModelChanging) -> None:
        """Load a model, once there is room for it.

        Raises:
            PravahaError: it cannot be loaded.
        """
        model = change.model
        if model.is_loaded:
            return
        self._start_engine(model)
        self._make_room(change)
        while True:
            try:
                model.engine.load_model()
                break
            except ModelDoesNotFit:
                if not self._make_memory(change):
                    raise
        change.accept()
        model.engine.wait_ready()

    def _start_engine(self, model: ServedModel) -> None:
        """Start a model's engine without the model, if it does not run."""
        snapshot = model.engine.snapshot()
        with self._changed:
            if self._closed:
                raise EngineUnavailable(SHUTTING_DOWN)
            if snapshot.state in (EngineState.FAILED, EngineState.STOPPED):
                if model is self.primary:
                    raise EngineUnavailable(snapshot.last_error or "The engine has stopped.")
                model.engine = self._make_engine(model.engine.config, self._find_free)
            if model.engine.started:
                return
            model.engine.start(without_model=NOT_LOADED)
        with suppress(EngineUnavailable):
            model.engine.wait_ready()

    def _make_room(self, change: ModelChanging) -> None:
        """Unload idle models until one more may be loaded; waits while all of them are used.

        Raises:
            EngineUnavailable: nobody waits for the load any more, or the server is shutting down.
        """
        while True:
            with self._changed:
                others = self._others(change.model)
            if sum(one.is_loaded for one in others) < self.max_loaded:
                return
            self._free_one(change)

    def _make_memory(self, change: ModelChanging) -> bool:
        """Unload an idle model, if its memory and that of the other ones would be enough.

        Where only requests wait for the load, it waits a moment for a model that is used.

        Returns:
            False if unloading does not help.

        Raises:
            EngineUnavailable: as `_free_one`.
        """
        with self._changed:
            others = self._others(change.model)
            if not change.for_requests:
                idle = self._idle()
                others = [one for one in others if one in idle]
            freed = sum(one.engine.memory_bytes for one in others)
        if not freed:
            return False
        change.model.engine.check_fits(freed=freed)
        self._free_one(change)
        return True

    def _free_one(self, change: ModelChanging) -> None:
        """Unload the least recently used idle model, or wait a moment while all are used.

        Queued changes of loaded models come first, reloads where nothing else is left: until they are made,
        their models do not count as idle, and both would wait for each other.

        Raises:
            EngineUnavailable: nobody waits for the load any more, or the server is shutting down.
        """
        with self._changed:
            if self._closed:
                raise EngineUnavailable(SHUTTING_DOWN)
            if change.for_requests and not change.model.leases:
                raise EngineUnavailable("No request waits for the model any more.")
            victim = next((one for one in self._idle() if one is not change.model), None)
            queued = self._queued_change_of_another(change, with_reloads=victim is None)
            if queued is not None:
                self._changes.remove(queued)
            elif victim is None:
                self._changed.wait(_POLL_S)
                return
            else:
                victim.change = unloading = ModelChanging(victim, ChangeKind.UNLOAD, None)
        if queued is not None:
            self._carry_out(queued)
            return
        _log.info("Unloading %s to make room for %s.", unloading.model.name, change.model.name)
        try:
            self._unload(unloading)
        except BaseException as error:
            self._finish(unloading, error)
            raise
        self._finish(unloading, None)

    def _queued_change_of_another(
        self, change: ModelChanging, *, with_reloads: bool
    ) -> ModelChanging | None:
        """The first queued change of a loaded model but that of `change`; a load of one does nothing."""
        for one in self._changes:
            if one.model is change.model or not one.model.is_loaded:
                continue
            if one.kind is not ChangeKind.RELOAD or with_reloads:
                return one
        return None

    def _unload(self, change: ModelChanging) -> None:
        """Unload a model when its requests have finished, or at the deadline."""
        engine = change.model.engine
        change.accept()
        self._wait_unused(change.model, engine, change.drain_s)
        engine.unload_model(drain_s=0)
        with suppress(EngineUnavailable):  # that it is unloaded
            engine.wait_ready()

    def _reload_in_place(self, change: ModelChanging) -> None:
        """Load a model again in its engine, while requests wait."""
        model = change.model
        self._start_engine(model)
        change.accept()
        self._wait_unused(model, model.engine, change.drain_s)
        model.engine.load_model(drain_s=0)
        model.engine.wait_ready()

    def _reload_beside(self, change: ModelChanging) -> None:
        """Load a model again in a second engine, and let the first one finish its requests.

        Raises:
            PravahaError: it cannot be loaded; the first engine goes on.
        """
        model, old = change.model, change.model.engine
        new = self._make_engine(old.config, self._find_free)
        with self._changed:
            if self._closed:  # nobody would shut it down
                raise EngineUnavailable(SHUTTING_DOWN)
            self._retiring.append(new)  # counted, and closed with the others, while it loads
            new.start(without_model=NOT_LOADED)
        try:
            with suppress(EngineUnavailable):
                new.wait_ready()
            new.load_model()
            change.accept()
            new.wait_ready()
        except BaseException as error:
            new.shutdown()
            with self._changed:
                self._retiring.remove(new)
            if not isinstance(error, ModelDoesNotFit):
                raise
            with self._changed:
                model.change = change  # from here on requests wait
            self._reload_in_place(change)
            return
        with self._changed:
            model.engine = new
            self._retiring.remove(new)
            self._retiring.append(old)
        threading.Thread(
            target=self._retire,
            args=(model, old, change.drain_s),
            name="pravaha-retire",
            daemon=True,
        ).start()

    def _retire(
        self, model: ServedModel, engine: AsyncPravahaEngine, drain_s: float | None
    ) -> None:
        """Shut a replaced engine down when its requests have finished."""
        self._wait_unused(model, engine, drain_s)
        engine.shutdown()
        with self._changed:
            self._retiring.remove(engine)
            model.engine.reopen_swap_tier()  # the old engine had its file
            self._changed.notify_all()

    def _wait_unused(
        self, model: ServedModel, engine: AsyncPravahaEngine, drain_s: float | None
    ) -> None:
        """Wait until no request uses an engine, at most `drain_s` seconds, or until all is closed."""
        deadline = self._clock() + (FOR_EVER if drain_s is None else drain_s)
        with self._changed:
            while not self._closed and self._clock() < deadline:
                used = any(lease.engine is engine for lease in model.leases)
                if not used and engine.is_idle:
                    return
                self._changed.wait(_POLL_S)

    # ---- memory ----

    def _find_free(self, model: "OpenModel", config: EngineConfig) -> int | None:
        """Free bytes for one more model.

        The pool of a loaded model takes memory only as it fills: what is free now is not all to give away.
        """
        free = free_memory(model, config)
        if self.is_single or free is None or self._total is None or is_on_gpu(model, config):
            return free
        with self._changed:
            engines = self._engines()
        return min(free, max(0, self._total - sum(one.memory_bytes for one in engines)))

    def _check_shares(self) -> None:
        """Raises ModelError: the shares of models that may be loaded together are more than there is."""
        largest = sorted(self._shares.items(), key=lambda one: -one[1])[: self.max_loaded]
        wanted = sum(share for _, share in largest)
        if self._total is None or wanted <= self._total:
            return
        listed = ", ".join(f"{name} {_mib(share)}" for name, share in largest)
        raise ModelDoesNotFit(
            f"The models' shares of memory ({listed}) add up to {_mib(wanted)}, but {_mib(self._total)} "
            "are available: lower the shares or free memory."
        )

    def _check_aliases(self) -> None:
        """Raises ModelError: an alias is also a model's name, or stands for no model that is served."""
        for alias, name in self.aliases.items():
            if alias in self._models:
                raise ModelError(f"{alias} cannot be an alias: a model is called so.")
            known = name in self._models or name == self.embedder.name
            if not known and not self.any_installed:
                raise ModelError(f"The alias {alias} stands for {name}, which is not served.")

    @property
    def _store(self) -> ModelStore:
        return self.primary.engine.store


def _memory_now() -> int | None:
    try:
        return available_memory()
    except OSError:
        return None


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"
