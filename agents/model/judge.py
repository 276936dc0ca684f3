"""`SessionJudge`: the decisions of the loaded model about texts, for the guardrails' tier 3."""

from agents.model.decisions import Decider
from agents.model.layout import SharedLayout
from agents.model.question import Question
from agents.model.session import ModelSession

_YES, _NO = "yes", "no"


class SessionJudge:
    """A `Decide` over a session: two forward passes for each text, in two label orders."""

    def __init__(self, session: ModelSession) -> None:
        """Ask the model of a session, whichever is loaded then."""
        self._session = session
        self._known: tuple[str, SharedLayout, Decider] | None = None

    async def __call__(self, question: str, text: str) -> float | None:
        """The calibrated probability of yes, or None where the model abstains.

        Raises:
            ModelFailure: no model is loaded, or the engine failed.
        """
        layout, decider = self._parts()
        asked = Question("guardrail", f"{question}\n\nText: {{subject}}", (_YES, _NO))
        (decision,), _ = await decider.decide(layout.shared(), [(asked, text)])
        return None if decision.abstained else decision.probabilities[_YES]

    def _parts(self) -> tuple[SharedLayout, Decider]:
        """Layout and decider of the loaded model."""
        self._session.model()
        fingerprint = self._session.client.tokenizer_fingerprint()
        if self._known is None or self._known[0] != fingerprint:
            layout = SharedLayout(self._session)
            self._known = fingerprint, layout, Decider(self._session, layout)
        return self._known[1], self._known[2]
