"""`StepsPhase`: what the model does in a run, by the capabilities that were measured.

    labels   one-token decisions about the findings, those that help with this model
    text     texts: what a procedure could not write, and what the model was measured to write better
    react    steps with tools, for agents that require them

An agent below its required capability keeps its procedure's output, and a note says so.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from pydantic import ValidationError

from agents.api.agent_spec import Capability
from agents.api.errors import BudgetExhausted, InvalidTask, ModelFailure
from agents.api.events import RunEventType
from agents.api.finding import Finding, Severity
from agents.model.decisions import Decider
from agents.model.layout import SharedLayout, SharedPrompt, system_text
from agents.model.profile import CapabilityProfile
from agents.model.question import Decision
from agents.model.session import ModelSession
from agents.outputs.answer import Answer
from agents.outputs.base import Output
from agents.outputs.critique import Critique
from agents.outputs.design import Artifact
from agents.outputs.findings import FindingRecord, Findings
from agents.outputs.sections import Sections
from agents.outputs.steps import Steps
from agents.outputs.tool_result import ToolResult
from agents.procedures.procedure import AgentTask
from agents.procedures.task_text import checks_output
from agents.sandbox.sandbox import SandboxFailed, SandboxUnavailable
from agents.steps.answer_forms import answer_schema, answered, card_notes
from agents.steps.code.code_phase import writes_code, written_output
from agents.steps.measures.measure import Report
from agents.steps.measures.model_profiles import ModelProfiles
from agents.steps.questions import QUESTIONS
from agents.steps.react import ReactLoop, StepRun
from agents.steps.shared_document import shared_document, shared_taint
from agents.steps.step_grammar import FINAL_ANSWER
from agents.steps.text_outputs import TextOutputs
from agents.steps.writing import text_member
from agents.tools.tool import Tool
from agents.width.probe_run import ProbeFailed
from engine.api.errors import EngineUnavailable, InvalidRequest
from engine.api.generation_defaults import SamplingChoice
from engine.api.request import SamplingParams

MAX_SCORED = 20
"""Findings that the model is asked about, the worst first."""
MAX_SHARED_TOKENS = 4096
_FALSE_ALARM = QUESTIONS["confirm_finding"].options[1]
_DOUBT = 0.5
"""Factor of a finding's confidence when the model calls it a false alarm. It never drops one."""
_MAX_TEXT_CHARS = 2_000
"""Free text in an argument of a tool, such as an edit."""


class ModelRun(StepRun, Protocol):
    """The run that the model takes part in (`agents.runs.agent_run`)."""

    async def findings_about(self, output: Any, source: str) -> list[Finding]:
        """What the agent's detectors find in an output, as if the task had given it to be checked.

        Nothing, if they check no outputs (`AgentSpec.checks`); a file that was made is checked as a file.

        Args:
            output: a text or a JSON value.
            source: what it was made from.
        """
        ...

    def untimed(self) -> AbstractContextManager[None]:
        """While it is open, the time is not the run's."""
        ...


class StepsPhase:
    """The model phase of all runs on one engine. Use from one event loop."""

    def __init__(
        self,
        session: ModelSession,
        tools: Sequence[Tool] | Callable[[], Sequence[Tool]] = (),
        *,
        profile: CapabilityProfile | None = None,
        allow_model: bool = False,
    ) -> None:
        """Begin; nothing is asked of the engine yet.

        Args:
            session: the engine.
            tools: all registered tools, for the shared catalogue; a function if they may change.
            profile: what the model can do; None looks it up, or measures it when the first agent runs.
            allow_model: let the model take part in everything, whatever was measured; an unknown model is
                not tested.
        """
        self.session = session
        self._tools = tools if callable(tools) else lambda: tools
        self._profiles = ModelProfiles(session, profile, allow_model=allow_model)
        self._layouts: dict[str, tuple[SharedLayout, Decider]] = {}

    @property
    def model(self) -> str:
        """The loaded model's name; empty if none is loaded."""
        loaded = self.session.client.snapshot().model
        return "" if loaded is None else loaded.name

    def parts(self) -> tuple[SharedLayout, Decider]:
        """Layout and decider of the loaded model.

        Raises:
            EngineUnavailable: no model is loaded.
        """
        fingerprint = self.session.client.tokenizer_fingerprint()
        if fingerprint not in self._layouts:
            layout = SharedLayout(self.session)
            self._layouts[fingerprint] = layout, Decider(self.session, layout)
        return self._layouts[fingerprint]

    async def profile(self, report: Report | None = None) -> CapabilityProfile:
        """The loaded model's capabilities, measured once if nothing is known of it (`ModelProfiles.tested`).

        Raises:
            ModelFailure: no model is loaded, or the engine failed.
        """
        return await self._profiles.tested(report)

    async def __call__(self, task: AgentTask, output: Output, run: ModelRun) -> Output:
        """The procedure's output as the model confirms, words or extends it.

        Raises:
            BudgetExhausted: the run's time is over.
            Cancelled: the run was cancelled.
        """
        try:
            return await self.written(task, output, run)
        except (ModelFailure, EngineUnavailable) as error:
            run.note(f"The model took no part to the end: {error}")
            return output

    async def written(self, task: AgentTask, output: Output, run: ModelRun) -> Output:
        """As a call, but an engine that fails is an error.

        Raises:
            ModelFailure, EngineUnavailable: no model is loaded, or the engine failed.
        """
        if _is_done(task, output, run):
            return output
        if _needs_capabilities(output, run):
            with run.untimed():
                profile = await self.profile(
                    lambda progress: run.record(RunEventType.MODEL_TEST, **progress.fields())
                )
        else:
            profile = await self._profiles.untested()
            if not (profile.questions or profile.outputs or profile.is_allowed):
                return output
        wanted = [name for name in run.spec.score_questions if name in profile.questions]
        scores = bool(wanted) and isinstance(output, Findings) and bool(output.findings)
        steps = run.spec.requires.rank >= Capability.REACT.rank and _is_stepped(output)
        writes = TextOutputs.takes(output, run, profile) and not _lacks_sources(task, output)
        helps = scores or steps or writes
        if not helps and run.spec.requires is Capability.LABELS:
            return output  # an auditor whose model has nothing to add needs no word about it
        refusal = self._refusal(profile, output, run)
        if refusal:
            run.note(refusal)
            return output
        if not helps:
            return output
        if profile.is_allowed:
            run.note(
                f"--allow-model: {self.model} takes part; it was measured to do {profile.summary}."
            )
        if profile.has(Capability.WRITE):
            written = await self._written(task, output, run)
            if written is not None:
                return written
        layout, decider = self.parts()
        shared = self._shared(layout, task, run)
        if isinstance(output, Findings) and scores:
            output = await self._scored(output, wanted, shared, decider, run)
        if not (steps or writes):
            return output
        run.tools.add_taint(shared_taint(task.document, task.workspace))
        texts = TextOutputs(self.session, layout, run, task, shared, self._sampling(run))
        try:
            if steps:
                return await self._stepped(task, output, shared, layout, run, profile, texts)
            return await texts.written(output)
        except (BudgetExhausted, InvalidTask) as error:
            run.note(f"The model's part ended without an answer: {error}")
        except ValidationError as error:
            run.note(f"The model's answer is not valid: {error.errors()[0]['msg']}.")
        return output

    async def _written(self, task: AgentTask, output: Output, run: ModelRun) -> Output | None:
        """What the model wrote for an agent that writes code; None for the others."""
        try:
            return await written_output(task, output, run, self.session)
        except (
            BudgetExhausted,
            InvalidRequest,
            ProbeFailed,
            SandboxUnavailable,
            SandboxFailed,
        ) as error:
            run.note(f"The model wrote no code: {error}")
            return output

    def _refusal(self, profile: CapabilityProfile, output: Output, run: ModelRun) -> str:
        """Why the model takes no part, in one sentence; empty if it does."""
        spec, kind = run.spec, type(output).__name__
        # Code is judged by running it, whatever the model was measured to say about a failure.
        is_run = profile.has(Capability.WRITE) and writes_code(spec.key, output)
        if profile.spoils(kind) and spec.requires.rank > Capability.LABELS.rank and not is_run:
            return (
                f"The model {self.model} was measured to get {profile.outputs[kind]:.0%} of outputs such as "
                f"{spec.key}'s right, so the agent did what needs no model. --allow-model lets it try."
            )
        if profile.has(spec.requires):
            return ""
        if spec.requires is not Capability.WRITE and profile.writes(kind):
            return ""  # an agent that requires steps then answers at once
        return (
            f"The model {self.model} was measured to do {profile.summary}; {spec.key} requires "
            f"{spec.requires.value}, so the agent did what needs no model. --allow-model lets it try."
        )

    def _shared(self, layout: SharedLayout, task: AgentTask, run: StepRun) -> SharedPrompt:
        context = self.session.model().context_length
        # Checked as a whole, so that the shared part stays the same for all agents.
        document = run.check_input("the document", shared_document(task.document, task.workspace))
        asked = run.check_input("the task", task.text)
        try:
            return layout.shared(
                task=f"Task: {asked}" if asked else "",
                document=document,
                system=system_text(self._tools()),
                max_tokens=min(MAX_SHARED_TOKENS, context // 2),
            )
        except InvalidRequest as error:
            raise ModelFailure(str(error)) from error

    async def _scored(
        self,
        output: Findings,
        wanted: Sequence[str],
        shared: SharedPrompt,
        decider: Decider,
        run: StepRun,
    ) -> Findings:
        """The findings with the model's votes: a doubt lowers the confidence, a severity can only rise."""
        records = output.findings[:MAX_SCORED]
        asked = [(QUESTIONS[name], _subject(record)) for record in records for name in wanted]
        try:
            decisions, usage = await decider.decide(shared, asked, run.meter)
        except BudgetExhausted as error:
            run.note(f"The model was not asked about the findings: {error}")
            return output
        run.usage = run.usage.plus(usage)
        voted = []
        for at, record in enumerate(records):
            votes = decisions[at * len(wanted) : (at + 1) * len(wanted)]
            for vote in votes:
                run.record(
                    RunEventType.DECISION,
                    question=vote.question,
                    finding=record.id,
                    label=vote.label,
                    abstained=vote.abstained,
                    probabilities={name: round(p, 4) for name, p in vote.probabilities.items()},
                )
            voted.append(with_votes(record, votes))
        return output.model_copy(update={"findings": [*voted, *output.findings[MAX_SCORED:]]})

    async def _stepped(
        self,
        task: AgentTask,
        output: Output,
        shared: SharedPrompt,
        layout: SharedLayout,
        run: ModelRun,
        profile: CapabilityProfile,
        texts: TextOutputs,
    ) -> Output:
        """The output that the model reaches in steps with tools; at once, if loops are beyond it."""
        form = type(output)
        loop = ReactLoop(
            self.session,
            layout,
            run,
            task.workspace,
            answer_schema(form, task.workspace),
            ends_with_tool=form is ToolResult,
            max_turns=run.spec.max_turns if profile.has(Capability.REACT) else 1,
            sampling=_steps_sampling(run),
            max_text=_MAX_TEXT_CHARS if profile.has(Capability.WRITE) else 400,
        )
        notes = card_notes(form)
        answer = await loop.answer_of(shared, f"{run.card}\n{notes}" if notes else run.card)
        if isinstance(output, ToolResult):
            return _tool_result(output, loop)
        written = answered(output, answer)
        member = text_member(form)
        if member is not None and not written.cannot_do:
            written = await texts.text_behind(loop, written, member)
        if loop.cut_answer:
            run.note("The answer took all room that was left: its end is missing.")
        found = await run.findings_about(written.model_dump(mode="json"), texts.source)
        if found and not output.cannot_do:
            run.note(f"The model's answer was dropped: {found[0].message}")
            return output
        return written

    def _sampling(self, run: StepRun) -> SamplingParams:
        """The run's sampling parameters; what it leaves open is as the model's makers recommend."""
        choice = SamplingChoice(_steps_sampling(run), frozenset(run.spec.sampling))
        return choice.for_model(self.session.model().generation_defaults)


def _is_done(task: AgentTask, output: Output, run: StepRun) -> bool:
    """Whether nothing is left to do: the call was made, the sum computed, or only a check asked for."""
    if isinstance(output, ToolResult | Steps):
        return not output.cannot_do
    return bool(run.spec.checks) and checks_output(task, run.spec.checks)


def _needs_capabilities(output: Output, run: StepRun) -> bool:
    """Whether the short test of an unknown model decides what it does for an output.

    Votes and findings need the complete measurement, of which the short test is no part.
    """
    is_missing = bool(output.cannot_do) and text_member(type(output)) is not None
    return run.spec.requires is not Capability.LABELS or is_missing


def _lacks_sources(task: AgentTask, output: Output) -> bool:
    """Whether an answer would be the model's own knowledge: an answer needs something to rest on."""
    given = task.document.strip() or task.inputs or len(task.workspace)
    return isinstance(output, Answer) and not given


def _is_stepped(output: Output) -> bool:
    """Whether steps lead to the output: a page is written as one text, findings are voted on."""
    return not isinstance(output, Artifact | Findings | Critique | Sections)


def _tool_result(output: ToolResult, loop: ReactLoop) -> ToolResult:
    """The last call that the model made, with its output; what it says about it does not count."""
    calls = [step for step in loop.steps if step.action != FINAL_ANSWER]
    if not calls or loop.last_output is None:
        return output
    return ToolResult(
        tool=calls[-1].action,
        arguments=dict(calls[-1].input),
        text=loop.last_output.text[:60_000],
        failed=loop.last_output.failed,
    )


def with_votes(record: FindingRecord, votes: Sequence[Decision]) -> FindingRecord:
    """A finding after the model's votes; abstentions change nothing."""
    changes: dict[str, Any] = {}
    for vote in votes:
        if vote.abstained:
            continue
        if vote.question == "severity":
            voted = Severity(vote.label)
            if voted.rank > record.severity.rank:
                changes["severity"] = voted
        elif vote.question == "confirm_finding" and vote.label == _FALSE_ALARM:
            changes["confidence"] = round(record.confidence * _DOUBT, 3)
    return record.model_copy(update=changes)


def _subject(record: FindingRecord) -> str:
    return f"{record.file}:{record.line} {record.rule}: {record.message}\nCode: {record.evidence}"


def _steps_sampling(run: StepRun) -> SamplingParams:
    given: dict[str, Any] = {"temperature": 0.0, **run.spec.sampling}
    if "top_k" in given:
        given["top_k"] = int(given["top_k"])
    return SamplingParams(**given)
