"""`ForkPrices` over an engine whose prices arrive later."""

from concurrent.futures import Future

from app.tui.fork_prices import ForkPrices
from engine.api.errors import EngineUnavailable
from engine.api.fork_price import ForkPrice
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from tests.fakes.fake_client import FakeClient
from tests.tui.harness import converse


class LatePrices(FakeClient):
    """Prices are what a test sets; `asked` holds the futures."""

    def __init__(self, *answers):
        super().__init__(*answers)
        self.asked = []

    def price(self, token_ids):
        self.asked.append(Future())
        return self.asked[-1]


def test_one_price_is_asked_for_at_a_time_and_the_old_one_is_shown_meanwhile(tmp_path):
    client = LatePrices()
    store = Store.open(tmp_path / "conversations.db")
    session = TreeSession(store, client)
    try:
        converse(session, client, ("one", "two"))
        question, answer = (node.id for node in session.path())
        prices = ForkPrices(session, client, clock=lambda: 0.0)
        assert prices.price(answer) is None
        assert prices.waiting
        assert prices.price(question) is None
        assert len(client.asked) == 1
        client.asked[0].set_result(ForkPrice(1, 0, None))
        assert prices.price(answer).prefill_tokens == 1
        assert not prices.waiting
        assert prices.is_known(answer)
        client.step()  # of another request: what is known is old
        assert prices.price(answer).prefill_tokens == 1
        client.asked[1].set_result(ForkPrice(9, 0, None))
        assert prices.price(answer).prefill_tokens == 9
        # A server that is away: nothing is known, and it is not asked again until it has worked.
        client.step()
        prices.price(question)
        client.asked[2].set_exception(EngineUnavailable("It is away."))
        assert prices.price(question) is None
        assert prices.price(question) is None
        assert len(client.asked) == 3
    finally:
        session.close()
        store.close()
