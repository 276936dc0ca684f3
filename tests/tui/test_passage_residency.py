"""Which passages of an answer are in the prefix cache."""

from app.runtime.stored_passages import load_passages
from app.tui.passage_residency import PassageResidency
from engine.clients.several_models_client import SeveralModelsClient, as_client
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from tests.fakes.chat_toys import REWRITING, ToyClient
from tests.fakes.fake_sources import FakeSources, passage
from tests.fakes.toy_model_set import NamedClient, ToyModelSet


def asked(folder, client):
    """An answer with two passages; its id, what was found, and the residency."""
    store = Store.open(folder / "c.db")
    return ask(TreeSession(store, client, passages=two_passages(), resume=False))


def two_passages():
    sources = FakeSources()
    sources.found.append((passage(1, "Ein Bolzen"), passage(2, "Zwei Schrauben")))
    return sources


def ask(session):
    session.sources.attach("docs")
    session.messages.send("wie fest?")
    session.pump()
    message, answer = (node.id for node in session.path())
    return answer, session.sources.passages_of(message), PassageResidency(session)


def test_a_passage_is_cached_when_the_prefix_reaches_behind_it(tmp_path):
    client = ToyClient()
    answer, found, residency = asked(tmp_path, client)
    passages = load_passages(found.passages)
    ids = client.requests[0].prompt_ids
    texts = client.token_texts(ids)
    ends = [next(n for n in range(len(ids)) if "".join(texts[:n]).endswith(one.text))
            for one in passages]  # fmt: skip

    def prefixes(tokens):
        client.resident = tokens
        return residency.prefixes(answer, found.context, passages)

    assert prefixes(len(ids)) == {1: "cached", 2: "cached"}
    assert prefixes(ends[1]) == {1: "cached", 2: "cached"}
    assert prefixes(ends[1] - 1) == {1: "cached", 2: "partly"}
    assert prefixes(ends[0]) == {1: "cached", 2: "not cached"}
    assert prefixes(ends[0] - 1) == {1: "partly", 2: "not cached"}
    assert prefixes(0) == {1: "not cached", 2: "not cached"}


def test_nothing_is_said_about_a_context_that_the_prompt_does_not_contain(tmp_path):
    client = ToyClient(REWRITING)
    answer, found, residency = asked(tmp_path, client)
    assert residency.prefixes(answer, "another text", load_passages(found.passages)) == {}


def test_the_passages_of_an_answer_are_looked_up_with_its_own_model(tmp_path):
    big, small = NamedClient("big"), NamedClient("small")
    small.tokenizer.decode = lambda ids, skip_special=True: "?"
    models = ToyModelSet(big, small)
    client = SeveralModelsClient(models)
    session = TreeSession(
        Store.open(tmp_path / "c.db"), as_client(client), passages=two_passages(), models=models,
        resume=False,
    )  # fmt: skip
    client.follow(lambda: session.model.current)
    answer, found, residency = ask(session)
    big.resident = len(big.requests[0].prompt_ids)
    session.model.choose("small")
    passages = load_passages(found.passages)
    assert residency.prefixes(answer, found.context, passages) == {1: "cached", 2: "cached"}
