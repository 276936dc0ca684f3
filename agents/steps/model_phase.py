"""`StepsPhase`: what the model does in a run, by the capabilities that were measured.

    labels   one-token decisions about the findings, those that help with this model
    text     the text that a procedure could not write
    react    steps with tools, for agents that require them

An agent below its required capability keeps its procedure's output, and a note says so.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.api.agent_spec import Capability
from agents.api.errors import BudgetExhausted, InvalidTask, ModelFailure
from agents.api.events import RunEventType
from agents.api.finding import Severity
from agents.model.ask_all import MAX_ANSWER_TOKENS
from agents.model.decisions import Decider
from agents.model.layout import SharedLayout, SharedPrompt, system_text
from agents.model.profile import CapabilityProfile
from agents.model.question import Decision
from agents.model.session import ModelSession, usage_of
from agents.outputs.base import Output
from agents.outputs.findings import FindingRecord, Findings
from agents.outputs.verdict import Verdict
from agents.procedures.procedure import AgentTask
from agents.sandbox.sandbox import SandboxFailed, SandboxUnavailable
from agents.steps.code.code_phase import written_output
from agents.steps.findings_answer import ReportedFindings, add_reported
from agents.steps.prose import is_prose
from agents.steps.questions import QUESTIONS
from agents.steps.react import ReactLoop, StepRun
from agents.steps.self_test import measured_profile
from agents.steps.shared_document import shared_document, shared_taint
from agents.tools.tool import Tool
from engine.api.errors import EngineUnavailable, InvalidRequest
from engine.api.generation_defaults import SamplingChoice
from engine.api.request import Request, SamplingParams

MAX_SCORED = 20
"""Findings that the model is asked about, the worst first."""
MAX_SHARED_TOKENS = 4096
_FALSE_ALARM = QUESTIONS["confirm_finding"].options[1]
_DOUBT = 0.5
"""Factor of a finding's confidence when the model calls it a false alarm. It never drops one."""


class StepsPhase:
    """The model phase of all runs on one engine. Use from one event loop."""

    def __init__(
        self,
        session: ModelSession,
        tools: Sequence[Tool] | Callable[[], Sequence[Tool]] = (),
        *,
        profile: CapabilityProfile | None = None,
    ) -> None:
        """Begin; nothing is asked of the engine yet.

        Args:
            session: the engine.
            tools: all registered tools, for the shared catalogue; a function if they may change.
            profile: what the model can do; None measures it when the first agent runs.
        """
        self.session = session
        self._tools = tools if callable(tools) else lambda: tools
        self._given = profile
        self._profiles: dict[str, CapabilityProfile] = {}
        self._measuring = asyncio.Lock()
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

    async def profile(self) -> CapabilityProfile:
        """The loaded model's capabilities; measured once.

        Raises:
            ModelFailure: no model is loaded, or the engine failed.
        """
        if self._given is not None:
            return self._given
        async with self._measuring:
            identity = self.session.identity()
            if identity not in self._profiles:
                self._profiles[identity] = await measured_profile(self.session, self.parts()[0])
            return self._profiles[identity]

    async def __call__(self, task: AgentTask, output: Output, run: StepRun) -> Output:
        """The procedure's output as the model confirms, words or extends it.

        Raises:
            BudgetExhausted: the run's time is over.
            Cancelled: the run was cancelled.
        """
        try:
            return await self._extend(task, output, run)
        except (ModelFailure, EngineUnavailable) as error:
            run.note(f"The model took no part to the end: {error}")
            return output

    async def _extend(self, task: AgentTask, output: Output, run: StepRun) -> Output:
        profile = await self.profile()
        if not profile.has(run.spec.requires):
            run.note(
                f"The model {self.model} was measured as {profile.capability.value!r}; "
                f"{run.spec.key} requires {run.spec.requires.value!r}, so only its detectors ran."
            )
            return output
        if profile.has(Capability.WRITE):
            written = await self._written(task, output, run)
            if written is not None:
                return written
        wanted = [name for name in run.spec.score_questions if name in profile.questions]
        scores = bool(wanted) and isinstance(output, Findings) and bool(output.findings)
        steps = profile.has(Capability.REACT) and run.spec.requires.rank >= Capability.REACT.rank
        words = bool(output.cannot_do) and profile.has(Capability.TEXT) and hasattr(output, "text")
        if not (scores or steps or words):
            return output
        layout, decider = self.parts()
        shared = self._shared(layout, task, run)
        if isinstance(output, Findings) and scores:
            output = await self._scored(output, wanted, shared, decider, run)
        if steps:
            output = await self._stepped(task, output, shared, layout, run, profile)
        elif words:
            output = await self._worded(output, shared, layout, run)
        return output

    async def _written(self, task: AgentTask, output: Output, run: StepRun) -> Output | None:
        """What the model wrote for an agent that writes code; None for the others."""
        try:
            return await written_output(task, output, run, self.session)
        except (BudgetExhausted, InvalidRequest, SandboxUnavailable, SandboxFailed) as error:
            run.note(f"The model wrote no code: {error}")
            return output

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
        run: StepRun,
        profile: CapabilityProfile,
    ) -> Output:
        """The output that the model reaches in steps with tools; the procedure's if it fails."""
        run.tools.add_taint(shared_taint(task.document, task.workspace))
        form = ReportedFindings if isinstance(output, Findings) else type(output)
        loop = ReactLoop(
            self.session,
            layout,
            run,
            task.workspace,
            _answer_schema(form),
            answer_reserve=min(1024, self.session.model().context_length // 4),
            sampling=_sampling(run),
            max_text=2000 if profile.has(Capability.WRITE) else 400,
        )
        try:
            answer = await loop.answer_of(shared, run.card)
            if isinstance(output, Findings):
                output, dropped = add_reported(output, answer, task.workspace)
                if dropped:
                    run.note(
                        f"{dropped} findings of the model quote nothing that is in their file."
                    )
                return output
            return _answered(output, answer)
        except (BudgetExhausted, InvalidTask) as error:
            run.note(f"The model's steps ended without an answer: {error}")
        except ValidationError as error:
            run.note(f"The model's answer is not valid: {error.errors()[0]['msg']}.")
        return output

    async def _worded(
        self, output: Output, shared: SharedPrompt, layout: SharedLayout, run: StepRun
    ) -> Output:
        """The output with a short text by the model instead of the reason why there was none."""
        choice = SamplingChoice(_sampling(run), frozenset(run.spec.sampling))
        defaults = self.session.model().generation_defaults
        sampling = replace(choice.for_model(defaults), seed=0, max_tokens=MAX_ANSWER_TOKENS)
        ids = (*shared.token_ids, *layout.tail(shared, run.card))
        try:
            generation = await self.session.generate(Request(ids, sampling), run.meter)
        except BudgetExhausted as error:
            run.note(f"The model wrote nothing: {error}")
            return output
        run.usage = run.usage.plus(usage_of([generation]))
        text = generation.text.strip()
        if not is_prose(text):
            run.note("The model's text was no prose and was dropped.")
            return output
        run.note(f"The text is the model's alone; the procedure had none: {output.cannot_do}")
        return output.model_copy(update={"text": text[:4000], "cannot_do": ""})


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


_DETECTED = frozenset(["findings", "claims", "frames", "inventory"])
_DECIDED = frozenset(["score", "score_of", "passed", "not_judged", "reasons", "cannot_do"])
"""Members of a verdict, which checks decide."""


def _kept(form: type[BaseModel]) -> frozenset[str]:
    """Members that detectors, parsers and checks fill in; a model's answer has none of them."""
    return _DETECTED | _DECIDED if issubclass(form, Verdict) else _DETECTED


def _answered(output: Output, answer: Mapping[str, Any]) -> Output:
    """The output with a model's answer in all members but those that detectors and checks filled in.

    Raises:
        pydantic.ValidationError: the answer is not one of the output's schema.
    """
    form = type(output)
    kept = {name: getattr(output, name) for name in _kept(form) & form.model_fields.keys()}
    given = {name: value for name, value in answer.items() if name not in kept}
    return form.model_validate(given).model_copy(update=kept)


def _answer_schema(form: type[BaseModel]) -> dict[str, Any]:
    """The schema of what the model answers."""
    schema = form.model_json_schema()
    if form is not ReportedFindings:
        members = schema.get("properties", {})
        kept = _kept(form)
        schema["properties"] = {k: v for k, v in members.items() if k not in kept}
    return schema


def _sampling(run: StepRun) -> SamplingParams:
    given: dict[str, Any] = {"temperature": 0.0, **run.spec.sampling}
    if "top_k" in given:
        given["top_k"] = int(given["top_k"])
    return SamplingParams(**given)
