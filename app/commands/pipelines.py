"""`pravaha pipelines`: list, show, run and resume graphs of agents."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from app.commands.outcome import one_sentence_errors
from app.commands.setting_options import refuse_remote_contradictions, setting_options

if TYPE_CHECKING:
    from agents.cluster import Cluster
    from agents.pipelines.pipeline import Pipeline
    from agents.pipelines.pipeline_run import PipelineResult
    from agents.runs.run_store import RunStore

pipelines_app = typer.Typer(
    no_args_is_help=True, help="List, show, run and resume pipelines: graphs of agents."
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
NameArgument = Annotated[str, typer.Argument(help="The pipeline, as `pipelines list` shows it.")]
NoModelOption = Annotated[bool, typer.Option("--no-model", help="Detectors only: load no model.")]
FailOnOption = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="LEVEL",
        help="Exit with 1 if a finding has this severity or a higher one: info, low, medium, high, "
        "critical, or never.",
    ),
]
ApproveOption = Annotated[
    str,
    typer.Option(
        "--approve",
        metavar="MODE",
        help="Tools with side effects: auto allows them, ask asks in the terminal, deny denies them.",
    ),
]


@pipelines_app.command("list")
def list_pipelines(as_json: JsonOption = False) -> None:
    """Show every pipeline: the built-in ones and yours."""
    from rich.table import Table
    from rich.text import Text

    from app.commands.console import console

    with one_sentence_errors():
        pipelines = _pipelines()
    if as_json:
        print(json.dumps({"pipelines": [_fields(one) for one in pipelines.values()]}, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("PIPELINE", no_wrap=True)
    table.add_column("NODES", justify="right")
    table.add_column("WHAT IT DOES")
    for one in pipelines.values():
        table.add_row(one.name, str(len(one.nodes)), Text(one.description))
    console().print(table)


@pipelines_app.command()
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """Show a pipeline's nodes and what each needs."""
    from rich.table import Table

    from agents.pipelines.pipeline_file import find_pipeline
    from app.commands.console import console

    with one_sentence_errors():
        pipeline = find_pipeline(name, _pipelines())
    if as_json:
        print(json.dumps(_fields(pipeline), indent=2))
        return
    out = console()
    out.print(f"{pipeline.name}: {pipeline.description}")
    table = Table(box=None, pad_edge=False)
    for title in ("NODE", "RUNS", "NEEDS", ""):
        table.add_column(title)
    for node_name in pipeline.order():
        node = pipeline.nodes[node_name]
        runs = node.agent or node.pipeline or f"reduce: {node.reduce}"
        note = "" if node.required else "optional"
        table.add_row(node_name, runs, ", ".join(node.needs), note)
    out.print(table)
    out.print(
        f"Output of {pipeline.output}; at most {pipeline.tokens:,} computed tokens and "
        f"{pipeline.seconds:g} s."
    )


@pipelines_app.command()
@setting_options("engine", "agents", "runs", "remote")
def run(
    context: typer.Context,
    name: NameArgument,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files and folders to work on.")
    ] = None,
    task: Annotated[str, typer.Option("--task", metavar="TEXT", help="What to do.")] = "",
    as_json: JsonOption = False,
    no_model: NoModelOption = False,
    fail_on: FailOnOption = "low",
    approve: ApproveOption = "ask",
    budget_tokens: Annotated[
        int | None, typer.Option("--budget-tokens", min=0, help="At most so many computed tokens.")
    ] = None,
    budget_seconds: Annotated[
        float | None, typer.Option("--budget-seconds", min=0.1, help="At most so many seconds.")
    ] = None,
    *,
    flags: dict[str, Any],
) -> None:
    """Run a pipeline. Its id is printed first; `pipelines resume ID` goes on after a crash.

    Exits with 0 if no finding has the severity of --fail-on and the last verdict passed, 1 if one has or it
    did not, 2 if the run failed, 3 if the verdict was not judged, as the tests could not run.
    """
    from agents.api.budget import Budget

    budget = None
    if budget_tokens is not None or budget_seconds is not None:
        budget = Budget(10**9, 86_400.0).tightened(tokens=budget_tokens, seconds=budget_seconds)

    def start(cluster: "Cluster", **more: Any) -> "Awaitable[PipelineResult]":
        return cluster.run_pipeline(name, paths or (), task=task, budget=budget, **more)

    _execute(
        start,
        {**(context.obj or {}), **flags},
        as_json=as_json,
        use_model=not no_model,
        fail_on=fail_on,
        approve=approve,
    )


@pipelines_app.command()
@setting_options("engine", "agents", "runs", "remote")
def resume(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="The run's id.")],
    as_json: JsonOption = False,
    no_model: NoModelOption = False,
    fail_on: FailOnOption = "low",
    approve: ApproveOption = "ask",
    *,
    flags: dict[str, Any],
) -> None:
    """Go on with a run that was killed or failed, at its first unfinished node."""

    def start(cluster: "Cluster", **more: Any) -> "Awaitable[PipelineResult]":
        return cluster.resume(run, **more)

    _execute(
        start,
        {**(context.obj or {}), **flags},
        as_json=as_json,
        use_model=not no_model,
        fail_on=fail_on,
        approve=approve,
    )


@pipelines_app.command()
def runs(as_json: JsonOption = False) -> None:
    """Show the newest runs and how they finished."""
    from datetime import datetime

    from rich.table import Table

    from app.commands.console import console
    from app.runtime.agents import open_run_store

    with one_sentence_errors():
        store = open_run_store()
        stored = store.list()
        store.close()
    if as_json:
        fields = [
            {"run": one.id, "pipeline": one.pipeline, "state": one.state, "created": one.created}
            for one in stored
        ]
        print(json.dumps({"runs": fields}, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for title in ("RUN", "PIPELINE", "STATE", "STARTED"):
        table.add_column(title, no_wrap=True)
    for one in stored:
        started = datetime.fromtimestamp(one.created).astimezone()
        table.add_row(one.id, one.pipeline, one.state.value, f"{started:%Y-%m-%d %H:%M:%S}")
    console().print(table)


def _pipelines() -> "dict[str, Pipeline]":
    from agents.pipelines.pipeline_file import load_pipelines
    from agents.plugins.registry import load_registry
    from app.runtime.agents import pipeline_folders

    found, problems = load_pipelines([*load_registry().pipeline_folders, *pipeline_folders()])
    for problem in problems:
        print(f"pravaha: {problem}", file=sys.stderr)
    return found


def _fields(pipeline: "Pipeline") -> dict[str, Any]:
    return {
        "name": pipeline.name,
        "description": pipeline.description,
        "output": pipeline.output,
        "tokens": pipeline.tokens,
        "seconds": pipeline.seconds,
        "nodes": [
            {
                "name": node.name,
                "agent": node.agent or None,
                "reduce": node.reduce,
                "pipeline": node.pipeline or None,
                "needs": list(node.needs),
                "required": node.required,
            }
            for node in pipeline.nodes.values()
        ],
    }


def _execute(
    start: "Callable[..., Awaitable[PipelineResult]]",
    flags: dict[str, Any],
    *,
    as_json: bool,
    use_model: bool,
    fail_on: str,
    approve: str,
) -> None:
    """Run or resume, print, and exit.

    Raises:
        typer.Exit: with the status.
        typer.BadParameter: an option has an unknown value.
    """
    from agents.api.agent_spec import PermissionMode
    from agents.api.events import RunState
    from app.commands.agents.command import EXIT_FAILED
    from app.commands.agents.running import threshold_of
    from app.commands.agents.status import status_of
    from engine.api.errors import PravahaError

    refuse_remote_contradictions(flags)
    threshold = threshold_of(fail_on)
    if approve not in get_args(PermissionMode):
        raise typer.BadParameter(f"--approve {approve}: use auto, ask or deny")
    mode = cast(PermissionMode, approve)
    try:
        result = asyncio.run(_run(start, flags, mode, use_model=use_model, as_json=as_json))
    except (PravahaError, OSError) as error:
        print(f"pravaha: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED) from None
    if result.state not in (RunState.OK, RunState.CANCELLED):
        raise typer.Exit(EXIT_FAILED)
    nodes = list(result.nodes.values())
    findings = [finding for node in nodes for finding in node.findings]
    raise typer.Exit(status_of(findings, [node.output for node in nodes], threshold))


def _store(stack: ExitStack) -> "RunStore | None":
    """The database of runs; None, with a warning, if it cannot be opened: the run is worth more."""
    from agents.api.errors import InvalidTask
    from app.runtime.agents import open_run_store

    try:
        store = open_run_store()
    except (InvalidTask, OSError) as error:
        print(f"pravaha: {error} This run is not saved and cannot be resumed.", file=sys.stderr)
        return None
    stack.callback(store.close)
    return store


async def _run(
    start: "Callable[..., Awaitable[PipelineResult]]",
    flags: dict[str, Any],
    mode: Any,
    *,
    use_model: bool,
    as_json: bool,
) -> "PipelineResult":
    from agents.cluster import Cluster
    from agents.runs.approvals import Approvals
    from app.commands.agents.asking import TerminalApprover, can_ask
    from app.commands.agents.findings_table import print_pipeline_result
    from app.commands.agents.progress import cancel_on_interrupt, show_nodes
    from app.runtime.agents import (
        open_model_client,
        open_registry,
        open_roster,
        open_run_guard,
        open_run_memory,
        pipeline_folders,
        tool_settings,
    )
    from app.runtime.opening import embedder
    from app.settings.sources import load_settings

    registry = open_registry(load_settings(flags))
    approvals = Approvals(has_approver=mode == "ask" and can_ask())
    cancelled = asyncio.Event()
    with ExitStack() as stack:
        cancel_on_interrupt(cancelled, stack)
        store = _store(stack)
        client = None
        if use_model:
            client = await asyncio.to_thread(stack.enter_context, open_model_client(flags))
        settings = load_settings(flags)
        encoder = stack.enter_context(closing(embedder(settings)))
        cluster = Cluster(
            registry=registry,
            guard=open_run_guard(settings, registry, encoder, client),
            memory=open_run_memory(settings, encoder, records=use_model),
            roster=open_roster(registry),
            client=client,
            approvals=approvals,
            mode=mode,
            store=store,
            pipeline_folders=pipeline_folders(),
            settings=tool_settings(settings),
        )
        with TerminalApprover(approvals):
            result = await start(cluster, cancelled=cancelled, on_start=show_nodes)
    if as_json:
        print(json.dumps(result.fields(), ensure_ascii=False, indent=2))
    else:
        print_pipeline_result(result)
    return result
