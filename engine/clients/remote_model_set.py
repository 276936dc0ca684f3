"""`RemoteModelSet`: the `ModelSet` of a server of several models (`pravaha --attach URL`)."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from engine.api.available_model import AvailableModel
from engine.api.errors import EngineUnavailable
from engine.api.snapshot import EngineState
from engine.clients.engine_client import EngineClient
from engine.clients.http_client import HttpClient


class RemoteModelSet:
    """The models of one server. Each that is asked for has a connection of its own, with its tokenizer.

    Args:
        url: the server.
        api_key: its key.
        names: its models, the primary one first; see `HttpClient.served_models`.
    """

    def __init__(self, url: str, *, api_key: str | None, names: Sequence[str]) -> None:
        self._url, self._api_key = url, api_key
        self.primary = names[0]
        self._known = frozenset(names)
        self._clients: dict[str, HttpClient] = {}
        self._loads: dict[str, Future[Any]] = {}  # begun by `awaits`
        self._wakers: list[Callable[[], None]] = []

    def has(self, name: str) -> bool:
        """Whether the server had a model of this name when it was asked last."""
        return name in self._known

    def client(self, name: str | None) -> EngineClient:
        """The client of a model; see `ModelSet.client`."""
        return self._client(name)

    def awaits(self, name: str | None) -> bool:
        """Whether requests have to wait for a model; see `ModelSet.awaits`."""
        client = self._client(name)
        name = name if name is not None and self.has(name) else self.primary
        snapshot = client.snapshot()
        load = self._loads.get(name)
        if snapshot.state is EngineState.READY and snapshot.model is not None:
            self._loads.pop(name, None)
            return False
        if load is None:
            if snapshot.state in (EngineState.FAILED, EngineState.STOPPED):
                return False  # the server is away, which the request reports
            self._loads[name] = client.begin_change(name, "load")
            return True
        if load.done() and (error := load.exception()) is not None:
            del self._loads[name]
            raise error
        if load.done() and snapshot.state is EngineState.UNLOADED and snapshot.last_error:
            del self._loads[name]
            raise EngineUnavailable(snapshot.last_error)
        return True

    def models(self) -> Sequence[AvailableModel]:
        """The server's models with their state; one round trip."""
        found = [replace(one, loaded=False) for one in self._client(None).models()]
        self._known = frozenset(one.name for one in found) | {self.primary}
        return found

    def refreshed(self, models: Sequence[AvailableModel]) -> Sequence[AvailableModel]:
        """The models with the state as it is now; one round trip."""
        return self.models()

    def load(self, name: str) -> None:
        """Begin to load a model; see `ModelSet.load`."""
        self._client(None).begin_change(name, "load").result()

    def unload(self, name: str) -> None:
        """Begin to unload a model once its requests have finished."""
        self._client(None).begin_change(name, "unload").result()

    def reload(self, name: str) -> None:
        """Begin to load a model anew; see `ModelSet.reload`."""
        self._client(None).begin_change(name, "reload").result()

    def on_wake(self, callback: Callable[[], None]) -> None:
        """As `EngineClient.on_wake`, of every model."""
        self._wakers.append(callback)
        for client in self._clients.values():
            client.on_wake(callback)

    def close(self) -> None:
        """Close the connections. The server keeps running."""
        for client in self._clients.values():
            client.close()

    def _client(self, name: str | None) -> HttpClient:
        if name is None or not self.has(name):
            name = self.primary
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = HttpClient(self._url, api_key=self._api_key, model=name)
            for callback in self._wakers:
                client.on_wake(callback)
        return client
