"""`Guardrails`: the checks of a conversation's input and output.

Tier 1 (recognizers) is always on and needs no model. Tier 2 (`InjectionClassifier`) and tier 3 (`ModelJudge`)
are asked by `classify_input` if they are given. They flag; the taint rule of the runs decides what untrusted
text may cause, also where every detection fails.

A recognizer or classifier that raises is logged, named in `failures` and left out; the others go on.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agents.guardrails.builtin import RECOGNIZERS, RecognizerFactory
from agents.guardrails.detection import Action, Detection, Kind
from agents.guardrails.policy import Policy
from agents.guardrails.recognizer import Recognizer
from agents.guardrails.redaction import RedactionMap, StreamRestore
from agents.guardrails.stream_check import Replace, StreamCheck

_LOG = logging.getLogger(__name__)

_REVERSIBLE = frozenset(
    {Kind.CARD, Kind.IBAN, Kind.PHONE, Kind.EMAIL, Kind.NATIONAL_ID, Kind.IP_ADDRESS, Kind.SECRET}
)


class Classifier(Protocol):
    """A guardrail that needs a model. `kinds` are those of its detections."""

    kinds: frozenset[Kind]

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
    def num_detections(self) -> int:
        """How many `detections` there are."""
        return len(self._check.detections)

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
        self,
        policy: Policy | None = None,
        classifiers: Sequence[Classifier] = (),
        recognizers: Mapping[str, RecognizerFactory] = RECOGNIZERS,
    ) -> None:
        """Prepare the recognizers.

        Args:
            policy: actions and limits; None takes the defaults.
            classifiers: tiers 2 and 3, for `classify_input`.
            recognizers: families of tier 1; `Registry.guardrails` has those of the plugins, too.

        Raises:
            ValueError: the policy's blocklist has an unusable entry.
        """
        self.policy = Policy() if policy is None else policy
        self._classifiers = tuple(classifiers)
        self._failures: dict[str, str] = {}
        self._families: dict[str, str] = {}  # by the name of the recognizer
        self._recognizers = tuple(
            one for name, family in recognizers.items() for one in self._made(name, family)
        )

    @property
    def failures(self) -> Mapping[str, str]:
        """What raised so far, by the name of the family, `family.recognizer` or the classifier."""
        return dict(self._failures)

    @property
    def acts(self) -> bool:
        """Whether the policy asks for anything at all."""
        actions = (*self.policy.input_actions.values(), *self.policy.output_actions.values())
        return any(action is not Action.ALLOW for action in actions)

    @property
    def examined_kinds(self) -> frozenset[Kind]:
        """The kinds that are looked for in input."""
        kinds = {one.kind for one in self._recognizers} | {Kind.SIZE}
        kinds |= {kind for one in self._classifiers for kind in one.kinds}
        return frozenset(
            kind for kind in kinds if self.policy.input_actions[kind] is not Action.ALLOW
        )

    def _made(self, name: str, family: RecognizerFactory) -> list[Recognizer]:
        """The recognizers of a family; none if it raises, unless it is a built-in one."""
        try:
            made = list(family(self.policy))
            if not all(isinstance(one, Recognizer) for one in made):
                raise TypeError("it returned something that is no Recognizer")
        except Exception as error:
            if RECOGNIZERS.get(name) is family:  # an error of the policy, such as an empty entry
                raise
            self._failed(name, error)
            return []
        self._families |= {one.name: name for one in made}
        return made

    def _failed(self, name: str, error: Exception) -> None:
        """Log and remember what raised, once."""
        if name in self._families:
            name = f"{self._families[name]}.{name}"
        if name not in self._failures:
            self._failures[name] = f"{type(error).__name__}: {error!s:.200}"
            _LOG.error("the guardrail %s failed and is left out", name, exc_info=error)

    def check_input(self, text: str, redactions: RedactionMap | None = None) -> CheckedText:
        """Check what a model is to read.

        Hidden characters are looked for first: inside of a number they would hide it from other recognizers.

        Args:
            text: the whole text.
            redactions: where placeholders are kept; None redacts without a way back.
        """

        def replacement(detection: Detection) -> str:
            if redactions is None or detection.kind not in _REVERSIBLE:
                return _irreversible(detection)
            return redactions.placeholder(detection.kind, detection.text)

        hidden, seen = self._run(text, replacement, hidden=True)
        if hidden.blocked is not None:
            return CheckedText(seen, tuple(hidden.detections), hidden.action, hidden.blocked)
        visible, checked = self._run(seen, replacement, hidden=False)
        removed = hidden.detections if hidden.action is Action.REDACT else []
        found = hidden.detections + [_moved(one, removed, text) for one in visible.detections]
        found.sort(key=lambda one: (one.start, -one.end))
        action = max(hidden.action, visible.action, key=lambda one: one.rank)
        blocked = None if visible.blocked is None else _moved(visible.blocked, removed, text)
        return CheckedText(checked, tuple(found), action, blocked)

    def _run(self, text: str, replacement: Replace, *, hidden: bool) -> tuple[StreamCheck, str]:
        """Check with the recognizers of hidden text, or with all others."""
        check = StreamCheck(
            [one for one in self._recognizers if (one.kind is Kind.HIDDEN_TEXT) == hidden],
            self.policy.input_actions,
            replacement,
            max_chars=self.policy.max_input_chars,
            on_failure=self._failed,
        )
        checked = check.feed(text) + check.finish()
        return check, checked

    async def classify_input(self, text: str) -> list[Detection]:
        """What the classifiers find in a text; the action is `policy.input_actions` of their kind."""
        found: list[Detection] = []
        for classifier in self._classifiers:
            try:
                found += await classifier.detect(text)
            except Exception as error:  # no model, a plugin's code: tier 1 and the taint rule stand
                self._failed(type(classifier).__name__, error)
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
            on_failure=self._failed,
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


def _moved(detection: Detection, gaps: Sequence[Detection], text: str) -> Detection:
    """A detection in the text without `gaps`, which are in order, at its place in the text with them."""
    start, end = detection.start, detection.end
    for gap in gaps:
        if gap.start <= start:
            start += gap.end - gap.start
        if gap.start < end:
            end += gap.end - gap.start
    return replace(detection, start=start, end=end, text=text[start:end])


def _irreversible(detection: Detection) -> str:
    if detection.kind is Kind.HIDDEN_TEXT:
        return ""
    return f"[{detection.kind.value.replace('_', ' ')} removed]"
