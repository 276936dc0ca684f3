"""`abilities`: what a model's profile switches on, as one line for people."""

from agents.api.agent_spec import AgentSpec, Capability
from agents.model.profile import PASS_OUTPUT, CapabilityProfile

_WORDS = {
    Capability.LABELS: "one-token answers",
    Capability.TEXT: "short texts",
    Capability.REACT: "loops of tools",
    Capability.WRITE: "functions",
}
_RUN = frozenset(["Diagnosis", "Patch", "TestFile"])
"""Outputs whose code is run before it is kept."""
NOT_TESTED = "not tested yet: the first agent that needs it tests it once"


def abilities(profile: CapabilityProfile | None) -> str:
    """The line: `short texts, functions; writes Answer, Plan; votes on severity`."""
    if profile is None:
        return NOT_TESTED
    parts = [
        ", ".join(_WORDS[one] for one in profile.reached)
        or "measured to do nothing: detectors only"
    ]
    written = sorted(name for name, share in profile.outputs.items() if share >= PASS_OUTPUT)
    if written:
        parts.append(f"writes {', '.join(written)}")
    if profile.questions:
        parts.append(f"votes: {', '.join(sorted(profile.questions))}")
    return "; ".join(parts)


def use_of(spec: AgentSpec, profile: CapabilityProfile) -> str:
    """What an agent uses a model of this profile for: `writes`, `votes`, both, or nothing.

    Code that the model writes is judged by tests, so `write` alone is enough for it.
    """
    uses = []
    kind = spec.output_schema
    if spec.requires is Capability.LABELS:
        if kind == "Findings" and profile.writes(kind):
            uses.append("adds")
    elif kind in _RUN or not profile.spoils(kind):
        answers_at_once = spec.requires is Capability.REACT and profile.writes(kind)
        if profile.has(spec.requires) or answers_at_once:
            uses.append("writes")
    if profile.questions.intersection(spec.score_questions):
        uses.append("votes")
    return ", ".join(uses)
