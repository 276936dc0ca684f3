"""The scheduler view: policy, the plan of a recent step, and the last steps."""

from collections.abc import Sequence

from app.text.scheduling_titles import BATCH_FORMER_TITLES, POLICY_TITLES
from app.tui.glyphs import Glyphs, gauge
from app.tui.numbers import compact, duration
from app.tui.view.spans import Line, Span, cut, fit
from app.tui.view.spark import build_spark
from app.tui.view.timeline import short_id
from engine.api.scheduling import Scheduling
from engine.api.snapshot import EngineSnapshot
from engine.api.step_view import PlannedStep, RowPhase, StepEntry

_PHASE_STYLES = {RowPhase.PREFILL: "$warning", RowPhase.DECODE: "$primary"}
_LABEL = 12


def heading(text: str, note: str, cells: int) -> Line:
    """A section's title with a rule and a remark at its end."""
    rule = max(0, cells - len(text) - len(note) - 2)
    return (Span(text, "bold $primary"), Span(f" {'─' * rule} ", "$panel"), Span(note, "$faint"))


def build_policy(snapshot: EngineSnapshot, cells: int, *, keys: tuple[str, str]) -> list[Line]:
    """The policy and the batch former, and the keys that change them."""
    scheduling: Scheduling = snapshot.scheduling
    former = BATCH_FORMER_TITLES.get(scheduling.batch_former, scheduling.batch_former)
    if scheduling.batch_former == "timed":
        former += f", {scheduling.step_target_ms:g} ms"
    policy = POLICY_TITLES.get(scheduling.policy, scheduling.policy)
    return [
        cut(
            (
                Span(label.ljust(_LABEL), "$muted"),
                Span(value),
                Span(f"   {key} changes it", "$faint"),
            ),
            cells,
        )
        for label, value, key in (("policy", policy, keys[0]), ("steps", former, keys[1]))
    ]


def build_plan(plan: PlannedStep | None, glyphs: Glyphs, cells: int, rows: int) -> list[Line]:
    """The rows of a step with their tokens, as a share of the step's tokens.

    Args:
        plan: None before the first step that was drawn.
        glyphs: the terminal's glyphs.
        cells: width.
        rows: most rows to show.
    """
    if plan is None:
        return [
            heading("Step plan", "", cells),
            (Span("no step since this view was opened", "$faint"),),
        ]
    total = sum(row.tokens for row in plan.rows)
    limit = plan.budget if plan.budget is not None else plan.limit
    note = f"step {plan.number}: {len(plan.rows)} rows, {total} of {limit} tokens"
    lines: list[Line] = [cut(heading("Step plan", note, cells), cells)]
    bar = max(4, cells - 40)
    for row in plan.rows[:rows]:
        full, empty = gauge(glyphs, row.tokens / max(1, total), bar)
        drafts = f" +{row.draft_tokens} drafts" if row.draft_tokens else ""
        lines.append(
            cut(
                (
                    Span(short_id(row.request_id).ljust(9), "$muted"),
                    Span(row.phase.value.ljust(8), _PHASE_STYLES[row.phase]),
                    Span(f"{row.tokens:>5} ", "bold"),
                    Span(full, _PHASE_STYLES[row.phase]),
                    Span(empty, "$panel"),
                    Span(f" at {compact(row.computed_tokens)}{drafts}", "$faint"),
                ),
                cells,
            )
        )
    if len(plan.rows) > rows:
        lines.append((Span(f"{len(plan.rows) - rows} more rows", "$faint"),))
    return lines


def build_steps(steps: Sequence[StepEntry], glyphs: Glyphs, cells: int) -> list[Line]:
    """The last steps, one column each, the newest at the right: time, prefill and decode tokens."""
    shown = steps[-max(0, cells - _LABEL) :]
    note = ""
    if shown:
        mean = sum(step.seconds for step in shown) / len(shown)
        note = f"{len(shown)} steps, mean {duration(mean)}, longest {duration(max(s.seconds for s in shown))}"
    lines: list[Line] = [heading("Last steps", fit(note, max(0, cells - 14)), cells)]
    for label, values, style in (
        ("time", [step.seconds for step in shown], "$accent"),
        ("prefill", [float(step.prefill_tokens) for step in shown], "$warning"),
        ("decode", [float(step.decode_tokens) for step in shown], "$primary"),
        ("drafts", [float(step.draft_tokens) for step in shown], "$muted"),
    ):
        top = max(values, default=0.0)
        text = build_spark(values, cells - _LABEL - 8, 1, glyphs.spark)[0]
        most = duration(top) if label == "time" else compact(round(top))
        lines.append(
            (Span(label.ljust(_LABEL), "$muted"), Span(text, style), Span(most.rjust(8), "$faint"))
        )
    return lines
