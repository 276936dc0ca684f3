"""Runs one agent for `pravaha agents run`: progress on standard error, the result on standard output."""

import asyncio
import json
import sys
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, cast, get_args

import typer

from agents.api.agent_spec import PermissionMode
from agents.api.events import RunEvent, RunState
from agents.api.finding import Severity
from agents.cluster import Cluster
from agents.model.recorded_session import RecordedSession
from agents.reports.sarif import sarif_log
from agents.runs.agent_run import AgentRun
from agents.runs.approvals import Approvals
from agents.runs.result import RunResult
from agents.service.recording import Recording, write_recording
from agents.steps.model_phase import StepsPhase
from app.commands.agents.asking import TerminalApprover, can_ask
from app.commands.agents.command import EXIT_FAILED
from app.commands.agents.findings_table import print_result
from app.commands.agents.progress import cancel_on_interrupt, show_steps
from app.commands.agents.status import status_of
from app.runtime.agents import (
    open_model_client,
    open_registry,
    open_roster,
    open_run_guard,
    open_run_memory,
    tool_settings,
)
from app.runtime.opening import embedder
from app.settings.sources import load_settings
from engine.api.errors import PravahaError

NEVER = "never"
MAX_INPUT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `pravaha agents run`, as they were given."""

    key: str
    paths: tuple[Path, ...]
    task: str
    base: Path | None
    as_json: bool
    sarif: Path | None
    use_model: bool
    fail_on: str
    approve: str
    budget_tokens: int | None
    budget_seconds: float | None
    record: Path | None


def run_agent(options: RunOptions, flags: dict[str, Any]) -> int:
    """Run to the end and print; the exit status.

    Raises:
        typer.BadParameter: an option has an unknown value.
    """
    threshold = threshold_of(options.fail_on)
    if options.approve not in get_args(PermissionMode):
        raise typer.BadParameter(f"--approve {options.approve}: use auto, ask or deny")
    try:
        result, saved = asyncio.run(_run(options, flags))
    except (PravahaError, OSError) as error:
        print(f"pravaha: {error}", file=sys.stderr)
        return EXIT_FAILED
    if not saved or result.state in (RunState.FAILED, RunState.DENIED):
        return EXIT_FAILED
    return status_of(result.findings, [result.output], threshold)


def threshold_of(level: str) -> Severity | None:
    """The severity of `--fail-on`, or None for never.

    Raises:
        typer.BadParameter: there is no such level.
    """
    if level == NEVER:
        return None
    try:
        return Severity(level)
    except ValueError:
        levels = ", ".join(Severity)
        raise typer.BadParameter(f"--fail-on {level}: use {levels} or {NEVER}") from None


async def _run(options: RunOptions, flags: dict[str, Any]) -> tuple[RunResult, bool]:
    """The result, and whether it could be recorded if that was asked for."""
    registry = open_registry(load_settings(flags))
    paths = [path for path in options.paths if str(path) != "-"]
    document = _standard_input() if len(paths) < len(options.paths) else ""
    project = paths[0] if len(paths) == 1 and paths[0].is_dir() else Path.cwd()
    roster = open_roster(registry, project)
    spec = roster.get(options.key)
    approvals = Approvals(has_approver=options.approve == "ask" and can_ask())
    approver = TerminalApprover(approvals)
    cancelled = asyncio.Event()
    events: list[RunEvent] = []
    runs: list[AgentRun] = []

    def started(run: AgentRun) -> None:
        runs.append(run)
        run.log.follow(events.append)
        run.log.follow(show_steps)

    with ExitStack() as stack:
        cancel_on_interrupt(cancelled, stack)
        client, phase, session = None, None, None
        if options.use_model:
            client = await asyncio.to_thread(stack.enter_context, open_model_client(flags))
            session = RecordedSession(client)
            phase = StepsPhase(session, registry.catalogue)
        profile = None
        if phase is not None and session is not None and options.record is not None:
            profile = await phase.profile()  # measured before, so that it is not recorded
            session.recording = True
        settings = load_settings(flags)
        encoder = stack.enter_context(closing(embedder(settings)))
        cluster = Cluster(
            registry=registry,
            roster=roster,
            model=phase,
            approvals=approvals,
            mode=cast(PermissionMode, options.approve),
            guard=open_run_guard(settings, registry, encoder, client),
            # What is recalled changes from day to day: a recorded run must do without to be replayed.
            memory=open_run_memory(
                settings, encoder, records=options.use_model, recalls=options.record is None
            ),
            settings=tool_settings(settings),
        )
        with approver:
            result = await cluster.run(
                options.key,
                paths,
                task=options.task,
                document=document,
                base=options.base,
                budget=spec.budget.tightened(
                    tokens=options.budget_tokens, seconds=options.budget_seconds
                ),
                cancelled=cancelled,
                on_start=started,
            )
    root = runs[0].task.workspace.root
    saved = True
    if options.record is not None:
        recording = Recording(
            key=options.key,
            budget=runs[0].meter.budget,
            paths=tuple(str(path.absolute()) for path in paths),
            task=options.task,
            document=document,
            base="" if options.base is None else str(options.base.absolute()),
            project=str(project.absolute()),
            mode=cast(PermissionMode, options.approve),
            has_approver=approvals.has_approver,
            model="" if profile is None else profile.model,
            profile=profile,
            events=events,
            answers=[] if session is None else session.answers,
            result=dict(result.fields()),
        )
        saved = _record(options.record, recording)
    if options.sarif is not None:
        detectors = [registry.detector(name) for name in spec.detectors]
        log = sarif_log(result, detectors, root=root, version=metadata.version("pravaha"))
        _write(options.sarif, json.dumps(log, ensure_ascii=False, indent=2) + "\n")
    if options.as_json:
        print(json.dumps(result.fields(), ensure_ascii=False, indent=2))
    elif options.sarif is None or str(options.sarif) != "-":
        print_result(result)
    return result, saved


def _record(folder: Path, recording: Recording) -> bool:
    """Write the recording; a full disk must not cost the result that is printed after it."""
    try:
        write_recording(folder, recording)
    except OSError as error:
        print(f"pravaha: the run was not recorded: {error}", file=sys.stderr)
        return False
    return True


def _standard_input() -> str:
    data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        raise OSError(f"Standard input is longer than {MAX_INPUT_BYTES // 1000:,} kB.")
    return data.decode("utf-8", "replace")


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        print(text, end="")
    else:
        path.write_text(text, encoding="utf-8")
