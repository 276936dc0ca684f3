"""`ServedModel`: one model that a server offers, loaded or not, and who uses it now."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum

from engine.api.errors import EngineUnavailable
from engine.api.keep_alive import FOR_EVER
from engine.api.snapshot import EngineState
from engine.runtime.engine import AsyncPravahaEngine


class ChangeKind(Enum):
    """What is done to a model."""

    LOAD = "load"
    RELOAD = "reload"
    UNLOAD = "unload"


@dataclass(eq=False, slots=True)
class ServedModel:
    """A model and its use. `ServedModels` guards all fields but `engine` with its lock.

    Attributes:
        engine: runs the model; a reload may replace it by another.
        keep_alive_s: seconds after the last use for which the model stays loaded.
        last_used: the monotonic instant at which its last lease was released, or it was loaded.
        change: the change for which requests have to wait; None if it can be used, or is not loaded.
        leases: those of requests that use it or wait for it.
        unloaded_idle: whether it was unloaded for being idle, or to make room: a request loads it again.
    """

    engine: AsyncPravahaEngine
    keep_alive_s: float = FOR_EVER
    last_used: float = 0.0
    change: "ModelChanging | None" = None
    leases: "set[ModelLease]" = field(default_factory=set)
    unloaded_idle: bool = False

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.engine.config.name

    @property
    def is_loaded(self) -> bool:
        """Whether the model takes requests."""
        snapshot = self.engine.snapshot()
        return snapshot.state is EngineState.READY and snapshot.model is not None

    @property
    def in_use(self) -> bool:
        """Whether a request needs the model: with a lease, or still live in the engine without one."""
        return bool(self.leases) or not self.engine.is_idle


@dataclass(eq=False, slots=True)
class ModelChanging:
    """A change of a served model that waits or is being made.

    Attributes:
        model: the model.
        kind: what is done.
        drain_s: seconds that running requests get before the model goes; None waits for all of them.
        for_requests: whether requests wait for it, without which it is dropped.
        accepted: done once the change is known to be possible; raises why it is not.
        finished: done when the change is made; raises why it failed.
    """

    model: ServedModel
    kind: ChangeKind
    drain_s: float | None = None
    for_requests: bool = False
    accepted: "Future[None]" = field(default_factory=Future)
    finished: "Future[None]" = field(default_factory=Future)

    def __post_init__(self) -> None:
        # A future that runs cannot be cancelled: who gives up waiting for it must not end it for others.
        for future in (self.accepted, self.finished):
            future.set_running_or_notify_cancel()

    @property
    def progress(self) -> float:
        """The share of the weights that is loaded, 0 to 1; 0 while the load waits."""
        snapshot = self.model.engine.snapshot()
        return snapshot.loading_progress if snapshot.state is EngineState.LOADING else 0.0

    def accept(self) -> None:
        """The change is possible."""
        if not self.accepted.done():
            self.accepted.set_result(None)

    def finish(self, error: BaseException | None = None) -> None:
        """The change is made, or failed."""
        for future in (self.accepted, self.finished):
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)


@dataclass(eq=False, slots=True)
class ModelLease:
    """A request's use of a model, from the choice of the model until the answer is sent.

    A model with leases is not unloaded for being idle, and a reload lets those of the old engine finish.

    Attributes:
        model: the model.
        engine: the engine that the request uses; None while it waits for the model.
    """

    model: ServedModel
    engine: AsyncPravahaEngine | None


class ModelLoading(EngineUnavailable):
    """The model is not loaded, but will be: wait for `change.finished` and ask again.

    Attributes:
        change: what loads it.
        lease: keeps the change from being dropped, and the loaded model from being unloaded; release it
            after asking again.
    """

    def __init__(self, change: ModelChanging, lease: ModelLease) -> None:
        """Say that the model of the change is being loaded."""
        super().__init__(f"The model {change.model.name} is being loaded: wait until it is.")
        self.change = change
        self.lease = lease
