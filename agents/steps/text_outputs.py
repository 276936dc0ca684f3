"""`TextOutputs`: the texts of outputs, written by the model and checked by the agent's own detectors.

A first draft is written at the run's temperature. If the detectors find something in it, further drafts are
sampled from the same prefill, and the one with the fewest findings is taken. A draft with findings replaces
nothing that a procedure wrote; where there is no other text it is given with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agents.api.agent_spec import Capability
from agents.api.finding import Finding
from agents.model.layout import SharedLayout, SharedPrompt
from agents.model.profile import CapabilityProfile
from agents.model.session import ModelSession
from agents.outputs.answer import Answer
from agents.outputs.base import Output
from agents.outputs.critique import Critique
from agents.outputs.design import Artifact
from agents.outputs.findings import FindingRecord, Findings
from agents.outputs.sections import Section, Sections
from agents.outputs.summary import Summary
from agents.procedures.procedure import AgentTask
from agents.procedures.task_text import bounded, source_text
from agents.steps.findings_answer import with_reported
from agents.steps.prose import MIN_WORDS, is_prose
from agents.steps.writing import LADDER, PLAIN, Draft, Writer, text_member
from engine.api.request import SamplingParams

if TYPE_CHECKING:
    from agents.steps.model_phase import ModelRun
    from agents.steps.react import ReactLoop, StepRun

_REWRITTEN = (Summary, Answer)
"""Outputs whose text a procedure takes from the sources, and a capable model writes anew."""
SUMMARY_RATIO = 0.4
"""Words of a summary by those of its source, if the task does not say."""
LONGEST_SUMMARY = 0.8
"""Characters of a summary by those of its source, from which on it is none."""
_PAGE = "Write the whole file in one fenced block and nothing else."


@dataclass(frozen=True, slots=True)
class TextOutputs:
    """Writes the texts of one run.

    Attributes:
        session, layout: of the loaded model.
        run: the run.
        task: what to do.
        shared: the prompt that all agents share.
        sampling: the run's.
    """

    session: ModelSession
    layout: SharedLayout
    run: "ModelRun"
    task: AgentTask
    shared: SharedPrompt
    sampling: SamplingParams

    @staticmethod
    def takes(output: Output, run: "StepRun", profile: CapabilityProfile) -> bool:
        """Whether a model of this profile writes something for an output."""
        name = type(output).__name__
        if isinstance(output, Sections):
            return bool(output.sections) and profile.has(Capability.TEXT)
        if isinstance(output, Critique | Findings):
            return not output.cannot_do and profile.writes(name)
        if text_member(type(output)) is None:
            return False
        if output.cannot_do:
            return profile.has(run.spec.requires) and profile.has(Capability.TEXT)
        if isinstance(output, _REWRITTEN):
            return profile.writes(name)
        return bool(getattr(output, "findings", ())) and profile.writes(name)

    @property
    def source(self) -> str:
        """What the texts are made from."""
        return source_text(self.task, "facts", "outline") or self.task.text

    async def written(self, output: Output) -> Output:
        """The output with the model's text.

        Raises:
            BudgetExhausted: there is no room for one.
            ModelFailure: the engine failed.
        """
        if isinstance(output, Sections):
            return await self._sections(output)
        if isinstance(output, Critique | Findings):
            return await with_reported(
                output, self.task, self.run, self.session, self.layout, self.shared
            )
        member = text_member(type(output))
        if member is None:
            raise AssertionError("the output has no text")
        return await self._text(output, member)

    async def text_behind(self, loop: "ReactLoop", output: Output, member: str) -> Output:
        """The output with a text that is written behind the steps of a loop."""
        prompt = (*loop.ids, *self.layout.turn(loop.answer_text, f"Noted. {PLAIN}"))
        drafts = await self._writer().drafts([prompt], shared_tokens=len(loop.ids))
        text = drafts[0].text
        is_short = len(text.split()) < MIN_WORDS  # a version or a sum is a good answer
        if not text or not (is_short or is_prose(text)):
            self.run.note("The model's text was no prose and was dropped.")
            return output
        self._note_cut(drafts[0])
        return _with_text(output, member, text)

    # One text.

    async def _text(self, output: Output, member: str) -> Output:
        is_page = isinstance(output, Artifact)
        request = f"{self.run.card}\n{_PAGE if is_page else PLAIN}{self._length(output)}"
        prompt = (*self.shared.token_ids, *self.layout.tail(self.shared, request))
        writer = self._writer()
        drafts = await writer.drafts([prompt], shared_tokens=len(prompt))
        best, found = await self._best(drafts, output, member)
        if best is None or found:
            drafts = await writer.drafts(
                [prompt] * len(LADDER), shared_tokens=len(prompt), temperatures=LADDER
            )
            more, others = await self._best(drafts, output, member)
            if more is not None and (best is None or len(others) < len(found)):
                best, found = more, others
        if best is None:
            what = "no summary" if isinstance(output, Summary) else "no prose"
            self.run.note(f"The model's text was {what} and was dropped.")
            return output
        if found and not output.cannot_do:
            self.run.note(f"The model's text was dropped: {found[0].message}")
            return output
        self._note_cut(best)
        if output.cannot_do:
            self.run.note(
                f"The text is the model's alone; the procedure had none: {output.cannot_do}"
            )
        else:
            self.run.note("The text is the model's; the agent's checks found nothing in it.")
        written = _with_text(output, member, best.text)
        return _measured(_with_findings(written, found), self.source)

    def _length(self, output: Output) -> str:
        """How long a summary should be, for the model: it rarely shortens by itself."""
        if not isinstance(output, Summary):
            return ""
        ratio = self.task.inputs.get("ratio", SUMMARY_RATIO)
        share = float(ratio) if isinstance(ratio, int | float) else SUMMARY_RATIO
        return f" Use at most {max(25, round(share * len(self.source.split())))} words."

    async def _best(
        self, drafts: Sequence[Draft], output: Output, member: str
    ) -> tuple[Draft | None, list[Finding]]:
        """The draft with the fewest findings, and those; None if none is worth checking."""
        best: Draft | None = None
        fewest: list[Finding] = []
        for draft in drafts:
            is_page = isinstance(output, Artifact)
            if not draft.text or not (is_page or is_prose(draft.text)):
                continue
            if isinstance(output, Summary) and len(draft.text) > LONGEST_SUMMARY * len(self.source):
                continue  # a copy is no summary
            checked: Any = draft.text
            if is_page:
                checked = {"name": _page_name(output), "content": draft.text}
            found = await self.run.findings_about(checked, self.source)
            if best is None or len(found) < len(fewest):
                best, fewest = draft, found
        return best, fewest

    def _writer(self) -> Writer:
        return Writer(self.session, self.run, self.source, self.sampling)

    def _note_cut(self, draft: Draft) -> None:
        if not draft.is_whole:
            self.run.note(
                "The text took all room that was left; it ends at its last whole sentence. "
                "--budget-tokens gives more."
            )

    # Sections.

    async def _sections(self, output: Sections) -> Output:
        """The sections with prose, all written at once behind one prompt."""
        requests = [f"{self.run.card}\n{_about(one)}\n{PLAIN}" for one in output.sections]
        tails = [self.layout.tail(self.shared, text) for text in requests]
        prompts = [(*self.shared.token_ids, *tail) for tail in tails]
        drafts = await self._writer().drafts(prompts, shared_tokens=len(self.shared.token_ids))
        sections, missing = [], 0
        for section, draft in zip(output.sections, drafts, strict=True):
            usable = bool(draft.text) and is_prose(draft.text)
            missing += not usable
            text = _without_title(draft.text, section.title) if usable else ""
            sections.append(section.model_copy(update={"text": bounded(text, 4_000)}))
        if missing:
            self.run.note(f"{missing} sections have no text: the model's was no prose.")
        if not all(draft.is_whole for draft in drafts):
            self.run.note(
                "Some sections took all room that was left; they end at a whole sentence."
            )
        self.run.note("The prose of the sections is the model's.")
        written = output.model_copy(update={"sections": sections})
        text = "\n\n".join(f"# {one.title}\n\n{one.text}" for one in sections if one.text)
        return (
            written
            if not text
            else _with_findings(written, await self.run.findings_about(text, self.source))
        )


def _with_text(output: Output, member: str, text: str) -> Output:
    limit = _limit(type(output), member)
    updated = {member: bounded(text, limit), "cannot_do": ""}
    if isinstance(output, Artifact):
        updated["name"] = _page_name(output)
    return output.model_copy(update=updated)


def _limit(form: type[BaseModel], member: str) -> int:
    """The most characters of a member."""
    schema = form.model_json_schema()["properties"][member]
    return int(schema.get("maxLength", 60_000))


def _page_name(output: Output) -> str:
    return getattr(output, "name", "") or "prototype.html"


def _with_findings(output: Output, found: Sequence[Finding]) -> Output:
    if not found or "findings" not in type(output).model_fields:
        return output
    known = list(getattr(output, "findings", ()))
    ids = {one.id for one in known}
    records = [FindingRecord.of(one) for one in found if one.id not in ids]
    return output.model_copy(update={"findings": [*known, *records]})


def _measured(output: Output, source: str) -> Output:
    """The output with the measures of its own text."""
    if not isinstance(output, Summary):
        return output
    ratio = round(len(output.text) / len(source), 4) if source else 0.0
    return output.model_copy(update={"ratio": ratio, "lines": []})


def _about(section: Section) -> str:
    """What a section is to be, for the model."""
    parts = [f"Write the section {section.title!r} in about {max(40, section.words)} words."]
    if section.points:
        parts.append("Its points: " + "; ".join(section.points) + ".")
    parts += [f"A passage for it: {text[:800]}" for text in section.material[:3]]
    return "\n".join(parts)


def _without_title(text: str, title: str) -> str:
    """The text without the section's title as its first line."""
    head, _, rest = text.partition("\n")
    plain = head.strip().strip("#*: ").lower()
    return rest.strip() if rest and plain == title.strip().lower() else text
