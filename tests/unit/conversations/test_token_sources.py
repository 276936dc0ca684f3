"""Where the tokens of an answer came from."""

from dataclasses import replace

import pytest

from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.token_sources import TokenSource, token_sources
from engine.conversations.tree import Node, NodeKind, NodeStatus
from tests.fakes.chat_toys import ToyClient

CACHED, COMPUTED, DRAFT = TokenSource


def sources(drafted, *, n_gen, n_prompt=10, n_cached=0, count=4):
    ids = tuple(range(count))
    node = Node("a", "t", None, NodeKind.ASSISTANT, "", NodeStatus.DONE, 1.0, token_ids=ids)
    return token_sources(
        replace(node, drafted=drafted, n_gen=n_gen, n_prompt=n_prompt, n_cached=n_cached)
    )


def test_generated_tokens_are_computed_or_accepted_drafts():
    found = sources((False, True, True, False), n_gen=4, n_cached=9)
    assert found == (COMPUTED, DRAFT, DRAFT, COMPUTED)


@pytest.mark.parametrize(
    ("n_cached", "begun"),
    [(0, (COMPUTED, COMPUTED)), (8, (COMPUTED, COMPUTED)), (9, (CACHED, COMPUTED))],
)
def test_the_beginning_of_an_answer_is_the_end_of_its_prompt(n_cached, begun):
    found = sources((False, False, True, False), n_gen=2, n_cached=n_cached)
    assert found == (*begun, DRAFT, COMPUTED)


def test_what_was_not_stored_is_unknown():
    assert sources((), n_gen=4) == (None,) * 4
    assert sources((), n_gen=2, n_cached=None) == (None,) * 4
    assert sources((), n_gen=2, n_cached=9) == (CACHED, COMPUTED, None, None)


def test_the_sources_of_an_answer_and_of_its_fork_are_stored(tmp_path):
    store, client = Store.open(tmp_path / "c.db"), ToyClient()
    session = TreeSession(store, client)
    session.messages.send("question")
    client.write("ab")
    session.pump()
    client.write("cdef", drafted=(0, 1), eos=True)
    session.pump()
    answer = session.head
    drafted = session.tokens.of(answer).sources
    assert drafted.count(DRAFT) == 2
    fork = session.branches.fork_at_token(answer, 2)
    client.write("xy", eos=True, cached=len(client.requests[-1].prompt_ids) - 1)
    session.pump()
    store.writes.flush()
    assert token_sources(store.nodes.get(answer)) == drafted
    begun, rest = (found := session.tokens.of(fork).sources)[:2], found[2:]
    assert begun == (CACHED, COMPUTED)
    assert set(rest) == {COMPUTED}
    store.close()
