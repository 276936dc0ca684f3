"""The scheduler pane: what runs in a step, and what each request did in the last seconds."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll

from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import SCHEDULER_KEYS, bindings, shown
from app.tui.numbers import clock_time
from app.tui.view.scheduler_lines import build_plan, build_policy, build_steps, heading
from app.tui.view.spans import Line
from app.tui.view.stats import is_busy
from app.tui.view.timeline import Timeline, build_gantt, build_gantt_legend
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks
from engine.api.step_view import STEP_ENTRIES, StepEntry

_PLAN_ROWS = 12
_GANTT_ROWS = 16


class SchedulerPane(DrawnOnTicks, VerticalScroll, can_focus=True):
    """Policy, step plan, timeline of requests, and the last steps."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(SCHEDULER_KEYS)

    def __init__(
        self,
        glyphs: Glyphs,
        *,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs
        self._timeline = Timeline()
        self._next_event = 0
        self._steps: list[StepEntry] = []

    def compose(self) -> ComposeResult:
        """One widget of lines."""
        yield Lines(id="scheduler-lines")

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        cells = self.scrollable_content_region.width - 4
        if cells <= 30:
            return False
        client, snapshot, glyphs = frame.client, frame.snapshot, self._glyphs
        batch = client.events(self._next_event)
        self._next_event = batch.next
        self._timeline.feed(batch.events)
        steps = client.recent_steps(0)[-STEP_ENTRIES:]
        # While nothing runs the chart stands still: the last activity stays to be read.
        now, end = snapshot.time, "now" if frame.as_of is None else clock_time(frame.as_of)
        if steps and not is_busy(snapshot):
            now, end = steps[-1].started + steps[-1].seconds, "last step"
        own = frame.session.answers.request_id
        keys = (_key("scheduler.policy"), _key("scheduler.steps"))
        lines: list[Line] = [
            heading("Scheduler", f"{snapshot.running} running, {snapshot.waiting} queued", cells),
            *build_policy(snapshot, cells, keys=keys),
            (),
            *build_plan(client.planned_step(), glyphs, cells, _PLAN_ROWS),
            (),
            heading("Requests", "the last seconds", cells),
            *build_gantt(self._timeline, now, glyphs, cells, _GANTT_ROWS, own=own, end=end),
            build_gantt_legend(glyphs),
            (),
            *build_steps(steps, glyphs, cells),
        ]
        self.query_one("#scheduler-lines", Lines).show_lines(lines)
        return False


def _key(name: str) -> str:
    return next(shown(key) for key in SCHEDULER_KEYS if key.id == name)
