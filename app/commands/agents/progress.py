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
    text = {
        RunEventType.TOOL_STARTED: f"{data.get('tool')} {data.get('arguments', '')}",
        RunEventType.ACTION_CHOSEN: f"step {data.get('step')}: {data.get('action')}",
        RunEventType.DECISION: f"{data.get('question')}: {data.get('label')}",
    }.get(event.type)
    if text is not None and sys.stderr.isatty():
        _print(f"· {event.agent} {text}")


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
