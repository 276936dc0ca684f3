"""`CapabilityProfile`: what the loaded model was measured to do.

    labels: one-token decisions on simple questions, calibrated and in both orders
    text:   a short answer from a sentence
    react:  questions whose answers only tools can give, in steps
    write:  functions that pass their examples

Features switch by these results, never by the model's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.api.agent_spec import Capability

PASS: Mapping[Capability, float] = {
    Capability.LABELS: 0.7,
    Capability.TEXT: 0.7,
    Capability.REACT: 0.7,
    Capability.WRITE: 0.5,
}
"""The share of items that a model must get right for a capability. Written code is accepted by tests alone
and sampled several times, so a model that is right half the time is of use."""
PASS_OUTPUT = 0.6
"""The share of items of an output's kind that a model must get right to write such outputs."""


@dataclass(frozen=True, slots=True)
class CapabilityProfile:
    """Results of the measurement.

    Attributes:
        model: identity of the model (`ModelSession.identity`).
        scores: share of right items by capability, 0–1.
        questions: names of the one-token decisions that were measured to help with this model.
        outputs: share of right items by name of the output; without an entry it was not measured.
        is_allowed: whether the user lets the model take part in everything, whatever was measured.
    """

    model: str
    scores: Mapping[Capability, float] = field(default_factory=dict)
    questions: frozenset[str] = frozenset()
    outputs: Mapping[str, float] = field(default_factory=dict)
    is_allowed: bool = False

    @property
    def capability(self) -> Capability:
        """The highest capability that was reached."""
        return max((one for one in Capability if self._passed(one)), key=lambda one: one.rank)

    @property
    def reached(self) -> tuple[Capability, ...]:
        """All capabilities that were reached, without `none`.

        Each is measured for itself: a model may write functions and be lost in a loop of tools.
        """
        return tuple(one for one in PASS if self._passed(one))

    @property
    def summary(self) -> str:
        """What was measured, in a few words: `labels, text, write`, or `nothing`."""
        return ", ".join(self.reached) or "nothing"

    def _passed(self, capability: Capability) -> bool:
        return self.scores.get(capability, 0.0) >= PASS.get(capability, 0.0)

    def has(self, capability: Capability) -> bool:
        """Whether the model reached a capability, or is allowed to do without."""
        return self.is_allowed or self._passed(capability)

    def writes(self, output: str) -> bool:
        """Whether the model was measured to get outputs of a name right, or is allowed to try.

        What was not measured is not switched on: a short test of a new model does not measure outputs.
        """
        return self.is_allowed or self.outputs.get(output, 0.0) >= PASS_OUTPUT

    def spoils(self, output: str) -> bool:
        """Whether the model was measured to get outputs of a name wrong."""
        return not self.is_allowed and self.outputs.get(output, 1.0) < PASS_OUTPUT
