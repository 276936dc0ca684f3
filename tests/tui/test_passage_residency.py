"""Which passages of a message are in the prefix cache."""

from app.runtime.stored_passages import load_passages
from app.tui.passage_residency import PassageResidency
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from tests.fakes.chat_toys import REWRITING, ToyClient
from tests.fakes.fake_sources import FakeSources, passage


def asked(folder, client):
    """A message with two passages; its id, what was found, and the residency."""
    sources = FakeSources()
    sources.found.append((passage(1, "Ein Bolzen"), passage(2, "Zwei Schrauben")))
    store = Store.open(folder / "c.db")
    session = TreeSession(store, client, passages=sources, resume=False)
    session.sources.attach("docs")
    session.messages.send("wie fest?")
    session.pump()
    message = session.path()[0].id
    return message, session.sources.passages_of(message), PassageResidency(session, client)


def test_a_passage_is_cached_when_the_prefix_reaches_behind_it(tmp_path):
    client = ToyClient()
    message, found, residency = asked(tmp_path, client)
    passages = load_passages(found.passages)
    ids = client.requests[0].prompt_ids
    texts = client.token_texts(ids)
    ends = [next(n for n in range(len(ids)) if "".join(texts[:n]).endswith(one.text))
            for one in passages]  # fmt: skip

    def prefixes(tokens):
        client.resident = tokens
        return residency.prefixes(message, found.context, passages)

    assert prefixes(len(ids)) == {1: "cached", 2: "cached"}
    assert prefixes(ends[1]) == {1: "cached", 2: "cached"}
    assert prefixes(ends[1] - 1) == {1: "cached", 2: "partly"}
    assert prefixes(ends[0]) == {1: "cached", 2: "not cached"}
    assert prefixes(ends[0] - 1) == {1: "partly", 2: "not cached"}
    assert prefixes(0) == {1: "not cached", 2: "not cached"}


def test_nothing_is_said_about_a_context_that_the_prompt_does_not_contain(tmp_path):
    client = ToyClient(REWRITING)
    message, found, residency = asked(tmp_path, client)
    assert residency.prefixes(message, "another text", load_passages(found.passages)) == {}
