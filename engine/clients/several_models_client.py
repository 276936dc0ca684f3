"""`SeveralModelsClient`: one `EngineClient` over a `ModelSet`, which asks the model of the open branch.

Front ends ask it as they ask the engine of a single model. Whose answers they get follows the conversation:
`follow` tells which model it is. What is numbered (events and block maps) is numbered anew, so that a reader
that follows the numbers sees another model as a change.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from engine.api.available_model import AvailableModel
from engine.api.event_ring import EventBatch, EventRing
from engine.api.snapshot import BlockMap
from engine.clients.engine_client import EngineClient
from engine.clients.model_set import ModelSet
from engine.runtime.model_change import CHANGE_DRAIN_S


class SeveralModelsClient:
    """An `EngineClient` of the model that is followed; those calls that are not written out are its client's.

    Who submits a request keeps the client of its model (`ModelSet.client`), and drains and cancels there.

    Args:
        models: the models, which it owns: `close` closes them.
    """

    def __init__(self, models: ModelSet) -> None:
        self._models = models
        self._chosen: Callable[[], str | None] = lambda: None
        self._pins: dict[str, EngineClient] = {}
        self._asked: EngineClient | None = None
        self._epoch_base = 0
        self._last_epoch = -1
        self._ring = EventRing()
        # By the id of a client, which lives as long as this one.
        self._next_events: dict[int, int] = {}

    def follow(self, chosen: Callable[[], str | None]) -> None:
        """Ask the model that `chosen` names at each call; None is the primary one."""
        self._chosen = chosen

    @property
    def _client(self) -> EngineClient:
        return self._models.client(self._chosen())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def models(self) -> Sequence[AvailableModel]:
        """The models with their state, of which the one that is followed is `loaded`."""
        followed = self._chosen() or self._models.primary
        return [replace(one, loaded=one.name == followed) for one in self._models.models()]

    def load_model(self, name: str, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        """Load a model beside the others. No request is dropped, however long `drain_s` is."""
        self._models.load(name)

    def unload_model(self, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        """Unload the model that is followed once its requests have finished."""
        self._models.unload(self._chosen() or self._models.primary)

    def blocks(self, since: int) -> BlockMap | None:
        """The KV blocks of the model that is followed, if they or the model changed after `since`."""
        client = self._client
        if client is not self._asked:
            self._asked, self._epoch_base = client, self._last_epoch + 1
        base = self._epoch_base
        blocks = client.blocks(since - base if since >= base else -1)
        if blocks is None:
            return None
        self._last_epoch = max(self._last_epoch, base + blocks.epoch)
        return replace(blocks, epoch=base + blocks.epoch)

    def events(self, since: int) -> EventBatch:
        """The events of the models while they were followed; see `EngineClient.events`."""
        client = self._client
        known = self._next_events.get(id(client), 0)
        batch = client.events(known)
        if batch.missed and known:
            self._ring.skip(batch.missed)
        for event in batch.events:
            self._ring.append(event)
        self._next_events[id(client)] = batch.next
        return self._ring.since(since)

    def pin(self, token_ids: Sequence[int]) -> str:
        """Pin a prefix of the model that is followed; see `EngineClient.pin`."""
        client = self._client
        pin_id = client.pin(token_ids)
        self._pins[pin_id] = client
        return pin_id

    def unpin(self, pin_id: str) -> None:
        """End a pin; unknown ids are ignored."""
        self._pins.pop(pin_id, self._client).unpin(pin_id)

    def on_wake(self, callback: Callable[[], None]) -> None:
        """As `EngineClient.on_wake`, of every model."""
        self._models.on_wake(callback)

    def close(self) -> None:
        """Close the models."""
        self._models.close()


def as_client(several: SeveralModelsClient) -> EngineClient:
    """The same object with the type that front ends know."""
    return cast("EngineClient", several)
