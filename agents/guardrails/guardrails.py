"""`Guardrails`: the checks of a conversation's input and output.

Tier 1 (recognizers) is always on and needs no model. Tier 2 (`InjectionClassifier`) and tier 3 (`ModelJudge`)
are asked by `classify_input` if they are given. They flag; the taint rule of the runs decides what untrusted
text may cause, also where every detection fails.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from agents.guardrails.blocklist import blocklist
from agents.guardrails.detection import Action, Detection, Kind
from agents.guardrails.exfiltration import exfiltration
from agents.guardrails.hidden_text import hidden_text
from agents.guardrails.national_ids import national_ids
from agents.guardrails.personal_data import personal_data
from agents.guardrails.policy import Policy
from agents.guardrails.redaction import RedactionMap, StreamRestore
from agents.guardrails.secret_formats import secret_formats
from agents.guardrails.special_tokens import special_tokens
from agents.guardrails.stream_check import StreamCheck

_REVERSIBLE = frozenset(
    {Kind.CARD, Kind.IBAN, Kind.PHONE, Kind.EMAIL, Kind.NATIONAL_ID, Kind.IP_ADDRESS, Kind.SECRET}
)


class Classifier(Protocol):
    """A guardrail that needs a model."""

    async def detect(self, text: str) -> list[Detection]:
        """Detections in a text, with offsets in it."""
        ...


@dataclass(frozen=True, slots=True)
class CheckedText:
    """The result of a check.

    Attributes:
        text: what may be used: redacted, and cut where it was blocked.
        detections: what was found, by offset in the original text.
        action: the strongest action that was taken.
        blocked: why the text must not be used (finish reason `content_filter`), or None.
    """

    text: str
    detections: tuple[Detection, ...]
    action: Action
    blocked: Detection | None = None


class OutputCheck:
    """The check of one answer while it is written. One thread at a time."""

    def __init__(self, check: StreamCheck, redactions: RedactionMap | None) -> None:
        """Check with `check`, then restore the placeholders of `redactions`."""
        self._check = check
        self._restore = StreamRestore(RedactionMap() if redactions is None else redactions)

    @property
    def detections(self) -> tuple[Detection, ...]:
        """What was found so far."""
        return tuple(self._check.detections)

    @property
    def action(self) -> Action:
        """The strongest action so far."""
        return self._check.action

    @property
    def blocked(self) -> Detection | None:
        """Why the answer ended (finish reason `content_filter`), or None."""
        return self._check.blocked

    def feed(self, piece: str) -> str:
        """The text that can be shown after this piece."""
        return self._restore.feed(self._check.feed(piece))

    def finish(self) -> str:
        """The rest of the text."""
        return self._restore.feed(self._check.finish()) + self._restore.finish()


class Guardrails:
    """The checks of a policy. Thread-safe; a `RedactionMap` belongs to one conversation."""

    def __init__(
        self, policy: Policy | None = None, classifiers: Sequence[Classifier] = ()
    ) -> None:
        """Prepare the recognizers.

        Args:
            policy: actions and limits; None takes the defaults.
            classifiers: tiers 2 and 3, for `classify_input`.

        Raises:
            ValueError: the policy's blocklist has an unusable entry.
        """
        self.policy = Policy() if policy is None else policy
        self._classifiers = tuple(classifiers)
        self._recognizers = (
            *personal_data(self.policy.phone_regions),
            *national_ids(),
            *secret_formats(),
            *hidden_text(),
            *special_tokens(),
            *exfiltration(self.policy.allowed_hosts),
            *blocklist(self.policy.blocklist),
        )

    def check_input(self, text: str, redactions: RedactionMap | None = None) -> CheckedText:
        """Check what a model is to read.

        Args:
            text: the whole text.
            redactions: where placeholders are kept; None redacts without a way back.
        """

        def replacement(detection: Detection) -> str:
            if redactions is None or detection.kind not in _REVERSIBLE:
                return _irreversible(detection)
            return redactions.placeholder(detection.kind, detection.text)

        check = StreamCheck(
            self._recognizers,
            self.policy.input_actions,
            replacement,
            max_chars=self.policy.max_input_chars,
        )
        checked = check.feed(text) + check.finish()
        return CheckedText(checked, tuple(check.detections), check.action, check.blocked)

    async def classify_input(self, text: str) -> list[Detection]:
        """What the classifiers find in a text; the action is `policy.input_actions` of their kind."""
        found: list[Detection] = []
        for classifier in self._classifiers:
            found += await classifier.detect(text)
        return [one for one in found if self.policy.input_actions[one.kind] is not Action.ALLOW]

    def output_check(self, redactions: RedactionMap | None = None) -> OutputCheck:
        """Begin the check of an answer; placeholders of `redactions` are restored at the end.

        Restoring comes last, so that a link with a placeholder in it is seen as what it is.
        """
        check = StreamCheck(
            self._recognizers,
            self.policy.output_actions,
            _irreversible,
            max_chars=self.policy.max_output_chars,
        )
        return OutputCheck(check, redactions)

    async def check_output(
        self, pieces: AsyncIterator[str], check: OutputCheck
    ) -> AsyncIterator[str]:
        """The pieces of an answer, checked. It ends where it was blocked (`check.blocked`)."""
        async for piece in pieces:
            shown = check.feed(piece)
            if shown:
                yield shown
            if check.blocked is not None:
                return
        rest = check.finish()
        if rest:
            yield rest


def _irreversible(detection: Detection) -> str:
    if detection.kind is Kind.HIDDEN_TEXT:
        return ""
    return f"[{detection.kind.value.replace('_', ' ')} removed]"
