"""`ModelSet`: the models that a front end can use side by side, each through a client of its own.

It has two forms: `ServedModelSet` (engines in this process) and `RemoteModelSet` (a server of several).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from engine.api.available_model import AvailableModel
from engine.clients.engine_client import EngineClient


class ModelSet(Protocol):
    """The models of one front end, by name.

    Threads: as `EngineClient`: `models`, `refreshed`, `load`, `unload` and `reload` may run on another thread
    beside the one that calls all others. None waits for a model to be loaded.
    """

    @property
    def primary(self) -> str:
        """The model of those who name none."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is a model of this name, loaded or not. Never waits."""
        ...

    def client(self, name: str | None) -> EngineClient:
        """The client of a model; None, or a name that there is not, gives that of the primary one.

        The same object for each call. Its snapshot has no model while the model is not loaded.
        """
        ...

    def awaits(self, name: str | None) -> bool:
        """Whether requests have to wait for a model; begins to load one that is not loaded.

        They do not wait for a server that is away.

        Raises:
            PravahaError: the load that an earlier call began has failed; the next call begins another.
        """
        ...

    def models(self) -> Sequence[AvailableModel]:
        """The models with their state; `loaded` marks none. Raises as `EngineClient.models`."""
        ...

    def refreshed(self, models: Sequence[AvailableModel]) -> Sequence[AvailableModel]:
        """What `models` returned, with the state as it is now; reads no headers."""
        ...

    def load(self, name: str) -> None:
        """Begin to load a model beside the others; returns once it is known to be possible.

        The least recently used idle model is unloaded for it if need be. No answer is dropped.

        Raises:
            ModelNotFound: there is no such model.
            ModelError: it cannot be used, or does not fit in memory.
            EngineUnavailable: it is being changed, or the server does not answer.
        """
        ...

    def unload(self, name: str) -> None:
        """Begin to unload a model once its requests have finished. Raises as `load`."""
        ...

    def reload(self, name: str) -> None:
        """Begin to load a model anew from its files; running requests finish. Raises as `load`."""
        ...

    def on_wake(self, callback: Callable[[], None]) -> None:
        """As `EngineClient.on_wake`, of every model."""
        ...

    def close(self) -> None:
        """Release all clients; engines in this process are shut down cleanly. Idempotent."""
        ...
