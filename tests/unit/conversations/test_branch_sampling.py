"""Sampling parameters of a branch: parsing, ranges, storing, restoring, and what stays with the model."""

import json
from dataclasses import replace

import pytest

from engine.api.errors import InvalidRequest
from engine.api.generation_defaults import GenerationDefaults, SamplingChoice
from engine.api.request import SamplingParams
from engine.conversations.branch_sampling import (
    PARAMETERS,
    change,
    own_value,
    read_changes,
    restored,
    set_again,
    stored,
)
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.tree import Node, NodeKind, NodeStatus
from tests.fakes.chat_toys import ToyClient

DEFAULT = SamplingChoice(
    SamplingParams(temperature=0.2, top_p=0.9, logprobs=0), frozenset({"top_p"})
)


def answered(sampling):
    return Node(
        "1", "t", None, NodeKind.ASSISTANT, "hi", NodeStatus.DONE, created_at=0.0, sampling=sampling
    )


def test_pairs_are_read_with_their_types():
    assert read_changes("temperature=0.7 top_k=40,seed=default") == {
        "temperature": 0.7,
        "top_k": 40,
        "seed": None,
    }
    assert read_changes("  ") == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("temprature=1", "There is no sampling parameter 'temprature'. Did you mean temperature"),
        ("temperature", "'temperature' is not of the form NAME=VALUE."),
        ("top_k=1.5", "top_k must be an integer, not '1.5'."),
        ("top_p=high", "top_p must be a number, not 'high'."),
    ],
)
def test_what_cannot_be_read_is_explained(text, sentence):
    with pytest.raises(InvalidRequest) as error:
        read_changes(text)
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"temperature": -1.0}, "temperature must be between 0 and 1e+30, not -1.0."),
        ({"top_p": 2.0}, "top_p must be between 1e-30 and 1, not 2.0."),
        ({"min_p": float("nan")}, "min_p must be finite, not nan."),
        ({"max_tokens": -5}, "max_tokens must be at least 0, not -5."),
        ({"seed": 2**64}, "seed must be between"),
    ],
)
def test_ranges_are_the_engines_own(changes, sentence):
    with pytest.raises(InvalidRequest) as error:
        change(DEFAULT, DEFAULT, changes)
    assert str(error.value).startswith(sentence)


def test_every_parameter_is_one_of_the_engine():
    change(DEFAULT, DEFAULT, {name: kind(1) for name, kind in PARAMETERS.items()})


def test_a_value_of_the_branch_wins_over_the_models_and_a_reset_gives_it_back():
    model = GenerationDefaults(temperature=0.6, top_k=20)
    assert DEFAULT.for_model(model).temperature == 0.6
    own = change(DEFAULT, DEFAULT, {"temperature": 1.5, "top_p": 0.5})
    assert (own.for_model(model).temperature, own.for_model(model).top_p) == (1.5, 0.5)
    assert own.for_model(model).top_k == 20
    assert change(own, DEFAULT, {"temperature": None, "top_p": None}) == DEFAULT


def test_only_what_the_branch_set_is_restored():
    own = change(DEFAULT, DEFAULT, {"temperature": 1.5, "seed": 7})
    used = own.for_model(GenerationDefaults(top_k=20))
    text = stored(used, own.own)
    assert json.loads(text)["top_k"] == 20
    flags = replace(DEFAULT, params=replace(DEFAULT.params, min_p=0.1))
    again = restored(flags, [answered(stored(used, frozenset())), answered(text)])
    assert again.own == {"temperature", "seed"}
    assert (again.params.temperature, again.params.seed) == (1.5, 7)
    assert (again.params.min_p, again.params.top_k) == (0.1, 0)


def test_a_branch_may_ask_for_a_new_seed_where_the_settings_have_one():
    settings = replace(DEFAULT, params=replace(DEFAULT.params, seed=5))
    own = change(settings, settings, {"seed": -1})
    assert (own.params.seed, own.own) == (None, {"seed"})
    again = restored(settings, [answered(stored(own.params, own.own))])
    assert (again.params.seed, again.own) == (None, {"seed"})
    assert set_again(settings, own) == own


def test_a_branch_may_have_no_limit_where_the_settings_have_one():
    settings = replace(DEFAULT, params=replace(DEFAULT.params, max_tokens=5))
    own = change(settings, settings, {"max_tokens": -1})
    assert (own.params.max_tokens, own.own) == (None, {"max_tokens"})
    assert own_value(own, "max_tokens") == -1
    again = restored(settings, [answered(stored(own.params, own.own))])
    assert (again.params.max_tokens, again.own) == (None, {"max_tokens"})
    assert set_again(settings, own) == own


def test_other_negative_seeds_count_down_from_the_highest():
    assert change(DEFAULT, DEFAULT, {"seed": -2}).params.seed == 2**64 - 2
    with pytest.raises(InvalidRequest, match="seed must be between"):
        change(DEFAULT, DEFAULT, {"seed": -(2**63) - 1})


@pytest.mark.parametrize(
    "text",
    [
        None,
        "{}",
        "[]",
        "{torn",
        '{"temperature":0.5}',
        '{"set_for_branch":["temperature"]}',
        '{"set_for_branch":["temperature"],"temperature":"hot"}',
        '{"set_for_branch":["temperature"],"temperature":-4}',
        '{"set_for_branch":["prompt"],"prompt":1}',
        '{"set_for_branch":3}',
    ],
)
def test_an_answer_without_usable_values_restores_the_default(text):
    assert restored(DEFAULT, [answered(text)]) == DEFAULT


def test_each_conversation_has_its_own_and_keeps_it_across_a_restart(tmp_path):
    client = ToyClient()
    store = Store.open(tmp_path / "conversations.db")
    session = TreeSession(store, client)
    session.sampling.change({"temperature": 1.25})
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    assert client.requests[-1].sampling.temperature == 1.25
    first = session.tree_id
    session.conversations.open_new()
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    assert client.requests[-1].sampling.temperature == 0.2
    session.conversations.open(first)
    assert session.sampling.current.params.temperature == 1.25
    session.close()
    store.close()
    store = Store.open(tmp_path / "conversations.db")
    session = TreeSession(store, client)
    assert session.sampling.current.params.temperature == 0.2
    session.conversations.open(first)
    session.messages.send("again")
    assert client.requests[-1].sampling.temperature == 1.25
    session.close()
    store.close()


def test_a_queued_message_is_answered_with_the_parameters_set_meanwhile(tmp_path):
    client = ToyClient()
    store = Store.open(tmp_path / "conversations.db")
    session = TreeSession(store, client)
    session.messages.send("hello")
    session.messages.send("and then")
    session.sampling.change({"temperature": 1.25})
    client.write("hi", eos=True)
    session.pump()
    assert [one.sampling.temperature for one in client.requests] == [0.2, 1.25]
    session.close()
    store.close()


def test_each_branch_has_its_own(tmp_path):
    client = ToyClient()
    store = Store.open(tmp_path / "conversations.db")
    session = TreeSession(store, client)
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    cool = session.path()[-1].id
    session.sampling.change({"temperature": 1.25})
    session.branches.regenerate()
    assert session.sampling.current.params.temperature == 1.25  # also while the answer runs
    client.write("ho", eos=True)
    session.pump()
    assert client.requests[-1].sampling.temperature == 1.25
    warm = session.path()[-1].id
    session.branches.adopt(cool)
    session.sampling.change({"temperature": None})
    assert session.sampling.current.params.temperature == 0.2
    session.branches.adopt(warm)
    assert session.sampling.current.params.temperature == 1.25
    session.close()
    store.close()


def test_a_refused_change_changes_nothing(tmp_path):
    store = Store.open(tmp_path / "conversations.db")
    session = TreeSession(store, ToyClient())
    before = session.sampling.current
    with pytest.raises(InvalidRequest):
        session.sampling.change({"top_k": 5, "temperature": -1.0})
    assert session.sampling.current is before
    session.close()
    store.close()


def test_the_beginning_of_only_one_parameter_stands_for_it():
    assert read_changes("temp=0.5 SEED=3") == {"temperature": 0.5, "seed": 3}
    with pytest.raises(InvalidRequest, match="There is no sampling parameter"):
        read_changes("top=1")
