"""A `ModelSet` of clients that a test drives, without engines: a test loads and fails their models."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.api.available_model import AvailableModel
from engine.api.errors import EngineUnavailable, ModelNotFound
from engine.api.snapshot import EngineSnapshot, EngineState
from engine.clients.engine_client import EngineClient
from tests.fakes.chat_toys import ToyTokenizer
from tests.fakes.fake_client import MODEL, FakeClient


class NamedClient(FakeClient):
    """A `FakeClient` of one of several models: not loaded is a state of its own."""

    def __init__(self, name: str, *answers: str, tokenizer: ToyTokenizer | None = None) -> None:
        super().__init__(*answers)
        self.model = replace(MODEL, name=name)
        self.tokenizer = tokenizer or ToyTokenizer(f"tokens of {name}")

    def snapshot(self) -> EngineSnapshot:
        snapshot = super().snapshot()
        if self.state is EngineState.UNLOADED:
            return replace(snapshot, on_demand=self.model.name)
        return snapshot


class ToyModelSet:
    """Models by name, the first one the primary.

    Attributes:
        clients: each drives one model.
        changes: what was asked for: the change and the model.
        failing: why the load of a model fails, by its name.
    """

    def __init__(self, *clients: NamedClient) -> None:
        self.clients = {client.model.name: client for client in clients}
        self.primary = next(iter(self.clients))
        self.changes: list[tuple[str, str]] = []
        self.failing: dict[str, str] = {}
        self.closed = False

    def has(self, name: str) -> bool:
        return name in self.clients

    def client(self, name: str | None) -> EngineClient:
        return self.clients.get(name or "", self.clients[self.primary])

    def awaits(self, name: str | None) -> bool:
        name = name if name is not None and self.has(name) else self.primary
        client = self.clients[name]
        if name in self.failing and ("load", name) in self.changes:
            raise EngineUnavailable(self.failing[name])
        if client.state is EngineState.UNLOADED:
            self.load(name)
        return client.state is not EngineState.READY

    def models(self) -> Sequence[AvailableModel]:
        return self.refreshed([AvailableModel(name, 2**20) for name in self.clients])

    def refreshed(self, models: Sequence[AvailableModel]) -> Sequence[AvailableModel]:
        return [
            replace(
                one,
                status=self.clients[one.name].state.value,
                memory_bytes=2**30 if self.clients[one.name].state is EngineState.READY else 0,
                loading_progress=self.clients[one.name].progress,
            )
            for one in models
        ]

    def load(self, name: str) -> None:
        if not self.has(name):
            raise ModelNotFound(f"No model {name}.")
        self.changes.append(("load", name))
        if name not in self.failing:
            self.clients[name].load(0.0)

    def unload(self, name: str) -> None:
        self.changes.append(("unload", name))
        self.clients[name].state = EngineState.UNLOADED

    def reload(self, name: str) -> None:
        self.changes.append(("reload", name))
        self.clients[name].load(0.0)

    def on_wake(self, callback: Callable[[], None]) -> None:
        for client in self.clients.values():
            client.on_wake(callback)

    def close(self) -> None:
        self.closed = True
