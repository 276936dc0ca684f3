"""`ServedModelSet`: the `ModelSet` of engines in this process."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.api.available_model import AvailableModel
from engine.api.errors import ModelError, PravahaError
from engine.api.snapshot import EngineState
from engine.clients.engine_client import EngineClient
from engine.clients.served_model_client import ServedModelClient
from engine.runtime.served_model import ModelChanging, ServedModel
from engine.runtime.served_models import ServedModels


class ServedModelSet:
    """The models of a `ServedModels` that it owns: `close` shuts them down.

    Args:
        models: not started, or started.
    """

    def __init__(self, models: ServedModels) -> None:
        self._models = models
        self._clients: dict[str, ServedModelClient] = {}
        self._loads: dict[str, ModelChanging] = {}  # begun by `awaits`
        self._wakers: list[Callable[[], None]] = []
        self._known = frozenset(self._names())

    @property
    def primary(self) -> str:
        """The model of those who name none."""
        return self._models.primary.name

    def has(self, name: str) -> bool:
        """Whether a model of this name was served, or installed when `models` was called last."""
        return name in self._known

    def client(self, name: str | None) -> EngineClient:
        """The client of a model; see `ModelSet.client`."""
        served = self._served(name)
        client = self._clients.get(served.name)
        if client is None:
            client = self._clients[served.name] = ServedModelClient(self._models, served)
            for callback in self._wakers:
                client.on_wake(callback)
        return client

    def awaits(self, name: str | None) -> bool:
        """Whether requests have to wait for a model; see `ModelSet.awaits`."""
        served = self._served(name)
        load = self._loads.get(served.name)
        if load is None:
            if served.is_loaded and served.change is None:
                return False
            load = self._loads[served.name] = self._models.load(served.name)
            load.finished.add_done_callback(lambda _: self._wake())
        if not load.finished.done():
            return True
        del self._loads[served.name]
        load.finished.result()
        return False

    def models(self) -> Sequence[AvailableModel]:
        """The models with their state; reads the headers of those that are installed."""
        installed = {one.name: one for one in self._models.primary.engine.models()}
        names = self._names()
        self._known = frozenset(names)
        return [self._available(name, installed.get(name)) for name in names]

    def refreshed(self, models: Sequence[AvailableModel]) -> Sequence[AvailableModel]:
        """The models with the state as it is now."""
        return [self._available(one.name, one) for one in models]

    def load(self, name: str) -> None:
        """Begin to load a model; see `ModelSet.load`."""
        self._begin(self._models.load(name))

    def unload(self, name: str) -> None:
        """Begin to unload a model once its requests have finished."""
        self._models.unload(name, drain_s=float("inf"))

    def reload(self, name: str) -> None:
        """Begin to load a model anew; see `ModelSet.reload`."""
        self._begin(self._models.reload(name))

    def on_wake(self, callback: Callable[[], None]) -> None:
        """As `EngineClient.on_wake`, of every model."""
        self._wakers.append(callback)
        for client in self._clients.values():
            client.on_wake(callback)

    def close(self) -> None:
        """Shut all engines down."""
        self._models.close()

    def _names(self) -> list[str]:
        """All names; those that are served if the store is damaged, which `models` reports."""
        try:
            return self._models.names()
        except ModelError:
            return [one.name for one in self._models.all()]

    def _served(self, name: str | None) -> ServedModel:
        """The model of a name, which is added if it is installed; the primary one if there is none."""
        if name is None or not self.has(name):
            return self._models.primary
        try:
            return self._models.served(name)
        except PravahaError:  # removed from the store meanwhile
            return self._models.primary

    def _begin(self, change: ModelChanging) -> None:
        """Wait until a change is known to be possible; wake the front end when it is made."""
        change.finished.add_done_callback(lambda _: self._wake())
        self._wake()
        change.accepted.result()

    def _wake(self) -> None:
        for callback in self._wakers:
            callback()

    def _available(self, name: str, installed: AvailableModel | None) -> AvailableModel:
        """A model with its state now."""
        served = self._models.find(name)
        found = replace(installed or AvailableModel(name, 0), loaded=False)
        if served is None:
            return replace(found, status=EngineState.UNLOADED.value)
        snapshot = self.client(name).snapshot()
        found = replace(
            found,
            status=snapshot.state.value,
            memory_bytes=served.engine.memory_bytes,
            loading_progress=snapshot.loading_progress,
        )
        info = snapshot.model
        if info is None:
            return found
        return replace(
            found,
            size=found.size or info.weight_bytes,
            architecture=info.architecture,
            parameters=info.parameters,
            weight_format=info.weight_format,
            context_length=info.context_length,
            active_parameters=info.active_parameters,
            problem="",
        )
