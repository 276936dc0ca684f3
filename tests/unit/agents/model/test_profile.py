"""What a model may do follows from its scores; each capability stands for itself."""

import pytest

from agents.api.agent_spec import Capability
from agents.model.profile import CapabilityProfile
from agents.model.session import ModelSession
from tests.fakes.chat_toys import ToyTokenizer
from tests.fakes.scripted_client import ScriptedClient


@pytest.mark.parametrize(
    ("scores", "reached"),
    [
        ({}, ()),
        ({Capability.LABELS: 0.9}, (Capability.LABELS,)),
        ({Capability.LABELS: 0.4, Capability.TEXT: 0.8}, (Capability.TEXT,)),
        (
            {Capability.LABELS: 1, Capability.TEXT: 0.1, Capability.REACT: 1},
            (Capability.LABELS, Capability.REACT),
        ),
        (
            {Capability.TEXT: 1, Capability.REACT: 0.5, Capability.WRITE: 0.6},
            (Capability.TEXT, Capability.WRITE),
        ),
        (dict.fromkeys(list(Capability)[1:], 1.0), tuple(list(Capability)[1:])),
    ],
)
def test_each_capability_is_reached_by_its_own_score(scores, reached):
    profile = CapabilityProfile("m", scores)
    assert profile.reached == reached
    assert profile.has(Capability.NONE)
    assert [one for one in list(Capability)[1:] if profile.has(one)] == list(reached)
    assert profile.capability is (reached[-1] if reached else Capability.NONE)
    assert profile.summary == (", ".join(reached) or "nothing")


def test_an_allowed_model_may_do_everything_and_keeps_its_scores():
    profile = CapabilityProfile("m", {}, outputs={"Plan": 0.0}, is_allowed=True)
    assert all(profile.has(one) for one in Capability)
    assert profile.writes("Plan")
    assert not profile.spoils("Plan")
    assert profile.summary == "nothing"


def test_outputs_that_were_not_measured_are_neither_written_nor_refused():
    profile = CapabilityProfile("m", {}, outputs={"Plan": 0.3, "Summary": 1.0})
    assert profile.spoils("Plan")
    assert not profile.writes("Plan")
    assert profile.writes("Summary")
    assert not profile.writes("Layout")
    assert not profile.spoils("Layout")


def test_the_identity_depends_on_contents_and_tokenizer():
    first, second, other = (ScriptedClient() for _ in range(3))
    other.tokenizer = ToyTokenizer("another vocabulary")
    identities = [ModelSession(client).identity() for client in (first, second, other)]
    assert identities[0] == identities[1] != identities[2]
    second.parameters = 7  # a model without a digest is told apart by its sizes
    assert ModelSession(second).identity() != identities[0]


def test_equal_files_are_one_model_whatever_its_name_and_the_machine():
    here, there, other = (ScriptedClient() for _ in range(3))
    here.model_digest = there.model_digest = "0123456789ab"
    other.model_digest = "ba9876543210"
    there.model_name, there.weight_bytes = "renamed", 99
    assert ModelSession(here).identity() == ModelSession(there).identity()
    assert ModelSession(here).identity() != ModelSession(other).identity()
