"""Runs `pravaha agents repair`: progress on standard error, the result on standard output."""

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import typer
from rich.text import Text

from agents.api.agent_spec import PermissionMode
from agents.api.events import RunEvent, RunEventType, RunState, event_fields
from agents.api.finding import Severity
from agents.cluster import Cluster
from agents.repair.repair_run import AUDITORS, BUDGET, RepairOptions, RepairRun
from agents.repair.result import RepairResult
from agents.runs.approvals import Approvals
from app.commands.agents.asking import TerminalApprover, can_ask
from app.commands.agents.command import EXIT_FAILED, EXIT_FINDINGS, EXIT_UNJUDGED
from app.commands.agents.findings_table import findings_table
from app.commands.agents.progress import cancel_on_interrupt, show_test_event
from app.commands.console import console
from app.runtime.agents import open_model_client, open_registry, open_roster, tool_settings
from app.settings.sources import load_settings
from app.text.safe_text import safe_line, safe_text
from engine.api.errors import PravahaError

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class RepairArguments:
    """The options of `pravaha agents repair`, as they were given."""

    path: Path
    apply: bool
    as_json: bool
    use_model: bool
    allow_model: bool
    approve: str
    agents: str
    min_severity: str
    budget_tokens: int | None
    budget_seconds: float | None
    record: Path | None


def run_repair(given: RepairArguments, flags: dict[str, Any]) -> int:
    """Repair to the end and print; the exit status.

    Raises:
        typer.BadParameter: an option has an unknown value.
    """
    options = options_of(given)
    try:
        result = asyncio.run(_run(given, options, flags))
    except (PravahaError, OSError) as error:
        print(f"pravaha: {error}", file=sys.stderr)
        return EXIT_FAILED
    if result.state is RunState.FAILED:
        return EXIT_FAILED
    if result.passed is None and not result.nothing_to_repair:
        return EXIT_UNJUDGED
    return EXIT_FINDINGS if result.passed is False else 0


def options_of(given: RepairArguments) -> RepairOptions:
    """The checked options.

    Raises:
        typer.BadParameter: an option has an unknown value, or two contradict each other.
    """
    if given.approve not in get_args(PermissionMode):
        raise typer.BadParameter(f"--approve {given.approve}: use auto, ask or deny")
    if given.apply and given.approve == "deny":
        raise typer.BadParameter("--apply and --approve deny contradict each other")
    try:
        severity = Severity(given.min_severity)
    except ValueError:
        levels = ", ".join(Severity)
        raise typer.BadParameter(f"--min-severity {given.min_severity}: use {levels}") from None
    keys = [one.strip() for one in given.agents.split(",") if one.strip()]
    return RepairOptions(
        min_severity=severity,
        agents=keys or AUDITORS,
        mode=cast(PermissionMode, given.approve),
        apply=given.apply,
        budget=BUDGET.tightened(tokens=given.budget_tokens, seconds=given.budget_seconds),
    )


async def _run(
    given: RepairArguments, options: RepairOptions, flags: dict[str, Any]
) -> RepairResult:
    settings = load_settings(flags)
    registry = open_registry(settings)
    approvals = Approvals(has_approver=options.mode == "ask" and can_ask())
    cancelled = asyncio.Event()
    events: list[RunEvent] = []

    def started(run: RepairRun) -> None:
        run.log.follow(events.append)
        run.log.follow(show_progress)

    with ExitStack() as stack:
        cancel_on_interrupt(cancelled, stack)
        client = None
        if given.use_model:
            client = await asyncio.to_thread(stack.enter_context, open_model_client(flags))
        cluster = Cluster(
            registry=registry,
            roster=open_roster(registry, given.path if given.path.is_dir() else given.path.parent),
            client=client,
            allow_model=given.allow_model,
            approvals=approvals,
            mode=options.mode,
            settings=tool_settings(settings),
        )
        with TerminalApprover(approvals):
            result = await cluster.repair(
                given.path, options=options, cancelled=cancelled, on_start=started
            )
    fields = json.dumps(result.fields(), ensure_ascii=False, indent=2)
    if given.record is not None:
        _record(given.record, events, fields, result.diff)
    if given.as_json:
        print(fields)
    else:
        print_repair(result)
    return result


def show_progress(event: RunEvent) -> None:
    """A line for what was begun, found, tried, asked or decided."""
    if event.type is RunEventType.MODEL_TEST:
        show_test_event(event)
    text = progress_line(event)
    if text:
        print(safe_line(text.rstrip()), file=sys.stderr, flush=True)


def progress_line(event: RunEvent) -> str:
    """What an event says in a line; empty if it is not shown."""
    data = event.data
    place = f"{data.get('rule')} {data.get('file')}:{data.get('line')}"
    match event.type:
        case RunEventType.NODE_STATE:
            return f"{event.node}: {data.get('state')} {data.get('reason', '')}"
        case RunEventType.PATCH_ACCEPTED:
            return f"accepted {place}: {data.get('reason')}"
        case RunEventType.PATCH_REJECTED:
            word = "rejected" if data.get("patch") else "no patch for"
            return f"{word} {place}: {data.get('reason')}"
        case RunEventType.NOTE:
            return f"note: {data.get('text')}"
        case RunEventType.FINDING if data.get("test"):
            return f"failing {data['test']}: {data.get('message')}"
        case RunEventType.SUSPECTS:
            names = [f"{one['name']} ({one['score']:.2f})" for one in data["suspects"]]
            return f"suspects of {data['test']}: {', '.join(names) or 'none'}"
        case RunEventType.SLIPS_TRIED:
            return _tried(data)
        case RunEventType.MODEL_ASKED:
            return f"asks the model to write {data['name']} anew ({len(data['prompt'])} characters)"
        case RunEventType.CANDIDATE_CHECKED if not data["passed"]:
            return f"candidate {data['candidate']} dropped by {data['check']}: {data['detail']}"
        case RunEventType.CANDIDATE_CHOSEN:
            return f"the model's best: {data['reason']}"
        case RunEventType.DECISION if data.get("clusters"):
            return f"{data['question']}: {data['reason']}"
    return ""


def _tried(data: Mapping[str, Any]) -> str:
    """The usual slips in a line: how many were tried, what passed, what dropped the others."""
    passed = [f"{one['what']} in {one['name']}" for one in data["passed"]]
    dropped = [f"{count} by {check}" for check, count in data["dropped"].items()]
    told = f"passed: {', '.join(passed)}" if passed else "none passed"
    return f"{data['tried']} usual slips tried, {told}; dropped: {', '.join(dropped) or 'none'}"


def print_repair(result: RepairResult) -> None:
    """The findings that are left, the diff, notes, and a summary line."""
    out = console()
    if result.findings:
        out.print(findings_table(list(result.findings)))
        out.print()
    for line in safe_text(result.diff).splitlines():
        out.print(Text(line, style=_DIFF_STYLES.get(line[:1], "")), soft_wrap=True)
    for note in result.notes:
        out.print(Text(f"note: {safe_line(note)}", style="dim"))
    state = "" if result.state is RunState.OK else f" {result.state.value.capitalize()}."
    error = f" {result.error}" if result.error else ""
    out.print(Text(f"repair: {result.summary()}{state}{safe_line(error)}"), soft_wrap=True)


def _record(folder: Path, events: list[RunEvent], fields: str, diff: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(event_fields(event), ensure_ascii=False) for event in events]
    (folder / "trajectory.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "result.json").write_text(fields + "\n", encoding="utf-8")
    (folder / "repair.diff").write_text(diff, encoding="utf-8")
