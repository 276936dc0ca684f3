"""Progress of agents on standard error, and the interrupt that cancels them."""

import asyncio
import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from agents.api.events import RunEvent, RunEventType
from app.text.safe_text import safe_line

if TYPE_CHECKING:
    from agents.pipelines.pipeline_run import PipelineRun
    from agents.steps.measures.measure import Progress

_WIDTH = 160


def cancel_on_interrupt(cancelled: asyncio.Event, stack: ExitStack) -> None:
    """The first Ctrl+C cancels the run, which prints its partial result; a second one ends at once."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        print("Stopping; what was found is printed. Ctrl+C again ends at once.", file=sys.stderr)
        cancelled.set()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    stack.callback(loop.remove_signal_handler, signal.SIGINT)


def show_steps(event: RunEvent) -> None:
    """One line for a tool call, a step or a decision, if standard error is a terminal."""
    data = event.data
    if event.type is RunEventType.MODEL_TEST:
        show_test_event(event)
        return
    text = {
        RunEventType.TOOL_STARTED: f"{data.get('tool')} {data.get('arguments', '')}",
        RunEventType.ACTION_CHOSEN: f"step {data.get('step')}: {data.get('action')}",
        RunEventType.DECISION: f"{data.get('question')}: {data.get('label')}",
    }.get(event.type)
    if text is not None and sys.stderr.isatty():
        _print(f"· {event.agent} {text}")


def show_test(progress: "Progress") -> None:
    """How far a model's test is."""
    _show_test_line(progress.text, done=progress.done, total=progress.total)


def show_test_event(event: RunEvent) -> None:
    """How far the model's test of a `MODEL_TEST` is."""
    data = event.data
    _show_test_line(str(data["text"]), done=int(data["done"]), total=int(data["total"]))


def _show_test_line(text: str, *, done: int, total: int) -> None:
    """One line that grows on a terminal; elsewhere a line at the beginning and at the end."""
    if sys.stderr.isatty():
        end = "\n" if done >= total else ""
        print(f"\r\x1b[K{safe_line(text)[:_WIDTH]}", end=end, file=sys.stderr, flush=True)
    elif done in (0, total):
        _print(text)


def show_nodes(run: "PipelineRun") -> None:
    """Print the run's id now, and a line for each node that finishes."""
    _print(f"run {run.id} ({run.pipeline.name}, {len(run.states)} nodes)")

    def show(event: RunEvent) -> None:
        if event.type is RunEventType.NODE_STATE and "/" not in event.node:
            state = event.data["state"]
            if state not in ("running", "pending"):
                done = sum(one.finished for one in run.states.values())
                reason = f": {event.data['reason']}" if event.data.get("reason") else ""
                _print(f"{done}/{len(run.states)} {event.node} {state}{reason}")
        else:
            show_steps(event)

    run.log.follow(show)


def _print(text: str) -> None:
    print(safe_line(text)[:_WIDTH], file=sys.stderr, flush=True)
