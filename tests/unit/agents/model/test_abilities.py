"""What a profile switches on, in one line and agent by agent."""

import pytest

from agents.api.agent_spec import Capability
from agents.model.abilities import abilities, use_of
from agents.model.profile import CapabilityProfile
from agents.specs.packaged import packaged_agents

SMALL = CapabilityProfile(
    "m",
    {Capability.LABELS: 0.9, Capability.TEXT: 1.0, Capability.REACT: 0.4, Capability.WRITE: 0.8},
    frozenset(["confirm_finding"]),
    {"Plan": 1.0, "Summary": 0.7, "Diagnosis": 0.0, "Findings": 0.3},
)


def test_the_line_names_what_is_switched_on():
    assert abilities(SMALL) == (
        "one-token answers, short texts, functions; writes Plan, Summary; votes: confirm_finding"
    )
    assert abilities(CapabilityProfile("m")) == "measured to do nothing: detectors only"
    assert "not tested yet" in abilities(None)


@pytest.mark.parametrize(
    ("key", "use"),
    [
        ("planner", "writes"),  # without loops, but its output was measured right
        ("coder", "writes"),
        ("narrator", "writes"),
        ("debugger", "writes"),  # its fixes are run, whatever it says about failures
        ("ui_designer", ""),  # needs loops, and was not measured
        ("security_audit", "votes"),
    ],
)
def test_each_agent_uses_what_was_measured(key, use):
    assert use_of(packaged_agents()[key], SMALL) == use


def test_a_model_that_finds_defects_adds_findings():
    finder = CapabilityProfile("m", outputs={"Findings": 1.0})
    assert use_of(packaged_agents()["logic_flaw"], finder) == "adds"
