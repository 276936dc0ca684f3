"""Capabilities follow from scores; kept results survive damage."""

import pytest

from agents.api.agent_spec import Capability
from agents.model.profile import CapabilityProfile, load_scores, save_scores
from agents.model.question_table import helpful_questions, question_table
from agents.model.session import ModelSession
from agents.steps.questions import QUESTIONS
from tests.fakes.chat_toys import ToyTokenizer
from tests.fakes.scripted_client import ScriptedClient

SCORES = {Capability.LABELS: 0.5, Capability.TEXT: 0.9}


@pytest.mark.parametrize(
    ("scores", "reached"),
    [
        ({}, Capability.NONE),
        ({Capability.LABELS: 0.9}, Capability.LABELS),
        ({Capability.LABELS: 0.4, Capability.TEXT: 0.8}, Capability.TEXT),
        ({Capability.LABELS: 1, Capability.TEXT: 0.1, Capability.REACT: 1}, Capability.LABELS),
        (dict.fromkeys(list(Capability)[1:], 1.0), Capability.WRITE),
    ],
)
def test_the_capability_is_the_highest_of_an_unbroken_row(scores, reached):
    profile = CapabilityProfile("m", scores)
    assert profile.capability is reached
    assert all(profile.has(one) == (one.rank <= reached.rank) for one in Capability)


def test_scores_are_kept(tmp_path):
    assert load_scores("m", tmp_path) is None
    save_scores("m", SCORES, tmp_path)
    assert load_scores("m", tmp_path) == SCORES


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b'{"version": 1, "scores": {"x": 1}}'])
def test_damaged_scores_are_measured_again(tmp_path, damage):
    save_scores("m", SCORES, tmp_path)
    (tmp_path / "m.json").write_bytes(damage)
    assert load_scores("m", tmp_path) is None


def test_the_identity_depends_on_model_and_tokenizer():
    first, second, other = (ScriptedClient() for _ in range(3))
    other.tokenizer = ToyTokenizer("another vocabulary")
    identities = [ModelSession(client).identity() for client in (first, second, other)]
    assert identities[0] == identities[1] != identities[2]
    second.parameters = 7
    assert ModelSession(second).identity() != identities[0]


def test_the_table_names_registered_questions_only():
    for measured in question_table().values():
        assert set(measured["questions"]) <= set(QUESTIONS)


def test_no_question_helps_an_unmeasured_model():
    assert helpful_questions("unknown") == frozenset()
