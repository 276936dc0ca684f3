"""`ModelHelp`: what the model does in a repair, by what it was measured to do.

    labels   votes on the findings, by the questions that help with this model
    react    explains the worst findings, and each auditor adds what it sees beside them; so does a model that
             was measured to write texts, or findings
    write    proposes a patch where no deterministic fixer knows one

All of it forks from one prompt: the detectors' findings, then the files with numbered lines. A finding of the
model names a file and line that exist, and has a low confidence. A patch of the model is
judged like any other (`acceptance`). A model below `labels`, such as the demo model, is asked nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from agents.api.agent_spec import AgentSpec, Capability
from agents.api.budget import BudgetMeter
from agents.api.errors import BudgetExhausted, InvalidTask, ModelFailure
from agents.api.events import RunEventType
from agents.api.finding import Finding, Severity, finding_from_fields
from agents.api.usage import Usage
from agents.detectors.audit.python_module import module_of
from agents.model.ask_all import SYSTEM, AnyQuestion, Replies, Structured, ask_all
from agents.model.profile import CapabilityProfile
from agents.model.session import ModelSession
from agents.outputs.findings import FindingRecord, Findings
from agents.outputs.patch import Patch
from agents.outputs.text import Text
from agents.procedures.audit.patch_applier import patch_of
from agents.procedures.audit.reproducers.calls import function_at
from agents.runs.event_log import EventLog
from agents.steps.findings_answer import EXAMPLE, add_reported, reported_schema
from agents.steps.measures.measure import Progress
from agents.steps.model_phase import StepsPhase, with_votes
from agents.steps.prose import is_prose
from agents.steps.questions import QUESTIONS
from agents.steps.shared_document import is_private, shared_document
from agents.text.unified_diff import make_diff
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace
from engine.api.errors import EngineUnavailable, InvalidRequest

MAX_REVIEWED = 20
"""Findings that the model votes on and explains, the worst first."""
MAX_LINES = 60
"""Lines that a patch of the model may replace."""
_NODE = "model"
_ANSWER_TOKENS = 256
_PATCH_TOKENS = 1024
_QUESTIONS = ("confirm_finding", "severity")
_PATCH_SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": 200},
        "lines": {
            "type": "array",
            "items": {"type": "string", "maxLength": 160},
            "maxItems": MAX_LINES + 10,
        },
    },
    "required": ["reason", "lines"],
    "additionalProperties": False,
}


class ModelHelp:
    """The model in one repair.

    Attributes:
        usage: tokens of all its requests.
    """

    def __init__(
        self,
        phase: StepsPhase,
        auditors: Sequence[AgentSpec],
        meter: BudgetMeter,
        log: EventLog,
        note: Callable[[str], None],
    ) -> None:
        """Begin; nothing is asked yet.

        Args:
            phase: the loaded model with its profile.
            auditors: whose role cards ask for further findings.
            meter: the run's budget.
            log: told about votes.
            note: tells the user something once.
        """
        self.usage = Usage()
        self._phase = phase
        self._auditors = auditors
        self._meter = meter
        self._log = log
        self._note = note

    @property
    def name(self) -> str:
        """The loaded model's name."""
        return self._phase.model

    async def review(self, findings: Sequence[Finding], workspace: Workspace) -> list[Finding]:
        """The findings with the model's votes and explanations, and those that only the model claims."""
        try:
            profile = await self._phase.profile(self._tested)
            voted = await self._voted(list(findings), workspace, profile)
            self._say_if_allowed(profile)
            explains = profile.has(Capability.REACT) or profile.writes(Text.__name__)
            adds = profile.has(Capability.REACT) or profile.writes(Findings.__name__)
            if not (explains or adds):
                patches = "patches" if profile.has(Capability.WRITE) else "no patches"
                self._note(
                    f"The model {self.name} was measured to do {profile.summary}: it explains no findings, "
                    f"adds none and writes {patches}."
                )
                return voted
            return await self._extended(voted, workspace, explains=explains, adds=adds)
        except (ModelFailure, EngineUnavailable, BudgetExhausted, InvalidRequest) as error:
            self._note(f"The model took no part in the audit: {error}")
            return list(findings)

    async def propose(self, finding: Finding, workspace: Workspace) -> Patch:
        """The patch of the fixers, or one by the model where they know none and it can write."""
        patch = patch_of(finding, workspace)
        if not patch.cannot_do:
            return patch
        try:
            profile = await self._phase.profile()
            if not profile.has(Capability.WRITE):
                return patch
            self._say_if_allowed(profile)
            return await self._written(finding, workspace) or patch
        except (
            ModelFailure,
            EngineUnavailable,
            BudgetExhausted,
            InvalidRequest,
            InvalidTask,
        ) as error:
            self._note(f"The model wrote no patch: {error}")
            return patch

    def _tested(self, progress: Progress) -> None:
        """Tell how far the model's test is."""
        self._log.append(RunEventType.MODEL_TEST, node=_NODE, agent=_NODE, **progress.fields())

    async def writer(self) -> ModelSession | None:
        """The model for code that tests judge; None if it was not measured to write code.

        Raises:
            ModelFailure: no model is loaded, or the engine failed.
        """
        profile = await self._phase.profile(self._tested)
        if profile.has(Capability.WRITE):
            self._say_if_allowed(profile)
            return self._phase.session
        self._note(
            f"The model {self.name} was measured to do {profile.summary}: it writes no repairs."
        )
        return None

    def _say_if_allowed(self, profile: CapabilityProfile) -> None:
        if profile.is_allowed:
            self._note(
                f"--allow-model: {self.name} takes part; it was measured to do {profile.summary}."
            )

    # Reviewing.

    async def _voted(
        self, findings: list[Finding], workspace: Workspace, profile: CapabilityProfile
    ) -> list[Finding]:
        wanted = [name for name in _QUESTIONS if name in profile.questions]
        records = [FindingRecord.of(one) for one in findings[:MAX_REVIEWED]]
        if not wanted or not records or not profile.has(Capability.LABELS):
            return findings
        layout, decider = self._phase.parts()
        room = self._phase.session.model().context_length // 2
        shared = layout.shared(
            document=_document(findings, workspace), system=SYSTEM, max_tokens=room
        )
        asked = [
            (
                QUESTIONS[name],
                f"{one.file}:{one.line} {one.rule}: {one.message}\nCode: {one.evidence}",
            )
            for one in records
            for name in wanted
        ]
        decisions, used = await decider.decide(shared, asked, self._meter)
        self.usage = self.usage.plus(used)
        after = []
        for at, record in enumerate(records):
            votes = decisions[at * len(wanted) : (at + 1) * len(wanted)]
            for vote in votes:
                self._log.append(
                    RunEventType.DECISION,
                    node=_NODE,
                    agent=_NODE,
                    question=vote.question,
                    finding=record.id,
                    label=vote.label,
                    abstained=vote.abstained,
                )
            after.append(finding_from_fields(with_votes(record, votes).model_dump()))
        return [*after, *findings[MAX_REVIEWED:]]

    async def _extended(
        self, findings: list[Finding], workspace: Workspace, *, explains: bool, adds: bool
    ) -> list[Finding]:
        """The findings explained, and the further ones of each auditor."""
        worst = [
            one
            for one in findings[:MAX_REVIEWED]
            if explains and one.severity.at_least(Severity.HIGH)
        ]
        shown = Workspace(workspace.root, _shown(findings, workspace))
        schema = reported_schema(shown)
        explain: list[AnyQuestion] = [
            f"Explain in one or two sentences what can go wrong here: {_line(one)}" for one in worst
        ]
        add: list[AnyQuestion] = [
            Structured(
                f"{spec.card}\nReport defects that are not listed above; none if there are none.",
                schema,
                EXAMPLE,
            )
            for spec in (self._auditors if adds else ())
        ]
        if not (explain or add):
            return findings
        replies = await self._ask(findings, workspace, [*explain, *add], _ANSWER_TOKENS)
        explained = {
            one.id: reply.text.strip()
            for one, reply in zip(worst, replies.replies, strict=False)
            if reply.complete and is_prose(reply.text)
        }
        found = [
            replace(one, message=f"{one.message} {explained[one.id]}"[:500])
            if one.id in explained
            else one
            for one in findings
        ]
        records = [FindingRecord.of(one) for one in found]
        dropped = 0
        for reply in replies.replies[len(worst) :]:
            if isinstance(reply.value, dict):
                records, lost = add_reported(records, reply.value, shown)
                dropped += lost
        if dropped:
            self._note(f"{dropped} findings of the model name a blank line.")
        return [finding_from_fields(one.model_dump()) for one in records]

    # Patches.

    async def _written(self, finding: Finding, workspace: Workspace) -> Patch | None:
        """A patch of the function (or the lines) around a finding; None if nothing changes."""
        file = workspace.get(finding.file)
        if file is None or not 1 <= finding.line <= len(file.lines):
            return None
        if is_private(file):
            self._note(f"{file.path} holds private data, which no model is shown.")
            return None
        first, last = _range(file, finding)
        question = Structured(
            f"Repair this defect with the smallest change: {_line(finding)}\n"
            f"Write the lines {first} to {last} of {file.path} anew, whole, with their indentation and "
            "without line numbers. Keep names, parameters and everything else as they are.",
            _PATCH_SCHEMA,
        )
        replies = await self._ask(
            [finding], Workspace(workspace.root, [file]), [question], _PATCH_TOKENS
        )
        value = replies.replies[0].value
        if not isinstance(value, dict):
            return None
        stored = file.data.decode("utf-8", "replace")
        end = "\r\n" if "\r\n" in stored else "\n"
        lines = stored.split(end)
        lines[first - 1 : last] = [str(one).rstrip("\r\n") for one in value["lines"]]
        diff = make_diff(file.path, stored, end.join(lines))
        if not diff:
            return None
        reason = f"By the model: {value['reason']}"
        return Patch(diff=diff, reason=reason[:500], finding_ids=[finding.id])

    async def _ask(
        self,
        findings: Sequence[Finding],
        workspace: Workspace,
        questions: Sequence[AnyQuestion],
        max_tokens: int,
    ) -> Replies:
        layout, decider = self._phase.parts()
        replies = await ask_all(
            self._phase.session,
            layout,
            decider,
            _document(findings, workspace),
            questions,
            max_tokens=max_tokens,
            meter=self._meter,
        )
        self.usage = self.usage.plus(replies.usage)
        return replies


def _document(findings: Sequence[Finding], workspace: Workspace) -> str:
    """The findings, then the files that have any, the same for all questions of one audit."""
    listed = "\n".join(_line(one) for one in findings[:100]) or "none"
    files = _shown(findings, workspace)
    return shared_document(
        f"Findings of the detectors:\n{listed}", Workspace(workspace.root, files)
    )


def _shown(findings: Sequence[Finding], workspace: Workspace) -> Sequence[SourceFile]:
    """The files that the model is shown: those that have findings, or all."""
    named = {one.file for one in findings}
    return [file for file in workspace if file.path in named] or workspace.files


def _line(one: Finding) -> str:
    return f"{one.severity.value} {one.file}:{one.line} {one.rule}: {one.message}"


def _range(file: SourceFile, finding: Finding) -> tuple[int, int]:
    """The lines that a patch replaces: the function around the finding if it is short, or its own lines."""
    last = min(max(finding.line, finding.end_line), len(file.lines))
    module = module_of(file)
    function = None if module is None else function_at(module, finding.line)
    end = None if function is None else function.end_lineno
    if function is not None and end is not None and end - function.lineno < MAX_LINES:
        return function.lineno, end
    return finding.line, last
