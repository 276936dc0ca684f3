"""`ForkPrices`: what it would cost to continue nodes of the open conversation, from the engine's `price`.

A price is kept until the engine has executed a step or the tree has changed. To price a node, its prompt
is assembled, which takes time in proportion to the branch; therefore branches of more than
`LONGEST_BRANCH` messages are not priced. A server's prices arrive later: until then the old ones are shown,
and no further node is asked for, so that a slow connection is left to keys and answers.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from app.tui.view.price import build_price
from app.tui.view.tree_lines import Residency, residency_of
from engine.api.errors import PravahaError
from engine.api.fork_price import ForkPrice
from engine.clients.engine_client import EngineClient
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind

LONGEST_BRANCH = 200
"""Most messages of a branch that is priced."""
BUSY_S = 1.0
"""Seconds that a price is kept while the engine works."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A price and the number of tokens that it is about."""

    price: ForkPrice
    prompt_tokens: int


class ForkPrices:
    """Prices of the open conversation's nodes.

    Args:
        clock: monotonic seconds.
    """

    def __init__(
        self,
        session: TreeSession,
        client: EngineClient,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._client = client
        self._clock = clock
        self._known: dict[str, Priced | None] = {}
        self._outdated: dict[str, Priced] = {}
        self._asked: tuple[str, int, Future[ForkPrice]] | None = None  # node, prompt tokens, price
        self._known_for: tuple[object, ...] = ()
        self._known_at = float("-inf")

    def price(self, node_id: str | None) -> ForkPrice | None:
        """The price of continuing a node; None if it is unknown."""
        found = self._priced(node_id)
        return None if found is None else found.price

    def texts(self, node_id: str | None) -> dict[str, str]:
        """What forking at a node and regenerating it would cost, by the action's id, as far as known."""
        tree = self._session.tree
        if node_id is None or node_id not in tree or node_id in self._session.answers.running:
            return {}
        node = tree[node_id]
        asked = node.parent_id if node.kind is NodeKind.ASSISTANT else node_id
        prices = {"fork": self.price(node_id), "regen": self.price(asked)}
        return {name: build_price(price) for name, price in prices.items() if price is not None}

    def residency(self, node_id: str) -> Residency | None:
        """How much of the KV of the branch that ends at a node is in the pool; None if unknown."""
        found = self._priced(node_id)
        if found is None:
            return None
        block_size = self._client.snapshot().blocks.block_size
        return residency_of(found.prompt_tokens, found.price.prefill_tokens, block_size)

    def is_known(self, node_id: str) -> bool:
        """Whether the node's price, or that it has none, is known, so that asking costs nothing."""
        self._forget_old()
        self._collect()
        return node_id in self._known

    @property
    def waiting(self) -> bool:
        """Whether a price is on its way: another node's can be asked for when it has arrived."""
        self._collect()
        return self._asked is not None

    def _forget_old(self) -> None:
        snapshot = self._client.snapshot()
        state = (self._session.version, snapshot.step, snapshot.state)
        if state == self._known_for:
            return
        busy = bool(snapshot.running) and self._known_for[:1] == state[:1]
        if busy and self._clock() - self._known_at < BUSY_S:
            return
        self._collect()
        if self._known_for[:1] == state[:1]:
            fresh = {node: found for node, found in self._known.items() if found is not None}
            self._outdated |= fresh
        else:  # the tree changed, or another one is open
            self._outdated = {}
        self._known.clear()
        self._known_for, self._known_at = state, self._clock()

    def _priced(self, node_id: str | None) -> Priced | None:
        if node_id is None:
            return None
        if not self.is_known(node_id) and self._asked is None:
            self._ask(node_id)
            self._collect()  # an engine in this process has answered
        return self._known.get(node_id) or self._outdated.get(node_id)

    def _ask(self, node_id: str) -> None:
        tree = self._session.tree
        self._known[node_id] = None
        if node_id not in tree or len(tree.path(node_id)) > LONGEST_BRANCH:
            return
        with suppress(PravahaError):  # the model is loading, or the template refuses the messages
            self._asked = (node_id, *self._session.tokens.measured_price(node_id))
            del self._known[node_id]

    def _collect(self) -> None:
        """Take the price that was asked for, if it has arrived."""
        if self._asked is None or not self._asked[2].done():
            return
        (node_id, prompt_tokens, future), self._asked = self._asked, None
        self._known[node_id] = None
        with suppress(PravahaError):
            self._known[node_id] = Priced(future.result(), prompt_tokens)
