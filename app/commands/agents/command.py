"""The commands of `pravaha agents`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.outcome import EXIT_ERROR, one_sentence_errors
from app.commands.setting_options import refuse_remote_contradictions, setting_options

if TYPE_CHECKING:
    from agents.roster.roster import Roster

agents_app = typer.Typer(
    no_args_is_help=True, help="List, show, check and run the agents: reviewers, writers, fixers."
)

EXIT_FINDINGS = 1
EXIT_FAILED = 2
EXIT_UNJUDGED = 3
"""There is a verdict to give, and it was not given: the tests that decide it did not run."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
KeyArgument = Annotated[str, typer.Argument(help="The agent's key, as `agents list` shows it.")]


@agents_app.command("list")
def list_agents(as_json: JsonOption = False) -> None:
    """Show every agent."""
    from app.commands.agents.listing import agent_fields, print_agents

    with one_sentence_errors():
        roster = _roster()
        if as_json:
            print(json.dumps({"agents": [agent_fields(spec) for spec in roster]}, indent=2))
        else:
            print_agents(roster)


@agents_app.command()
def show(key: KeyArgument, as_json: JsonOption = False) -> None:
    """Show what an agent does, its tools, its detectors and their rules."""
    from app.commands.agents.listing import agent_details, print_agent
    from app.runtime.agents import open_registry, open_roster

    with one_sentence_errors():
        registry = open_registry()
        spec = open_roster(registry).get(key)
        if as_json:
            print(json.dumps(agent_details(spec, registry), indent=2))
        else:
            print_agent(spec, registry)


@agents_app.command()
def lint(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Specification files; by default all packaged, user and project files."
        ),
    ] = None,
) -> None:
    """Check specification files: fields, tools, detectors, output schema, length of the role card."""
    from agents.api.errors import InvalidSpec
    from agents.roster.lint import check_spec
    from agents.specs.spec_file import read_spec
    from app.runtime.agents import open_registry

    with one_sentence_errors():
        problems = []
        if files:
            registry = open_registry()
            for path in files:
                try:
                    check_spec(read_spec(path), registry)
                except InvalidSpec as error:
                    problems.append(str(error))
            checked = len(files)
        else:
            roster = _roster()
            problems, checked = roster.problems, len(roster.specs) + len(roster.problems)
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(EXIT_ERROR)
    print(f"{checked} specifications are correct.")


@agents_app.command()
@setting_options("engine", "agents", "runs", "remote")
def run(
    context: typer.Context,
    key: KeyArgument,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Files and folders to work on; - reads a text from standard input."),
    ] = None,
    task: Annotated[str, typer.Option("--task", metavar="TEXT", help="What to do.")] = "",
    base: Annotated[
        Path | None,
        typer.Option("--base", metavar="DIR", help="The state before the change, to compare with."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with the findings and the output.")
    ] = False,
    sarif: Annotated[
        Path | None,
        typer.Option(
            "--sarif", metavar="FILE", help="Write the findings as SARIF 2.1.0; - prints it."
        ),
    ] = None,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Detectors only: load no model.")
    ] = False,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="LEVEL",
            help="Exit with 1 if a finding has this severity or a higher one: info, low, medium, high, "
            "critical, or never.",
        ),
    ] = "low",
    approve: Annotated[
        str,
        typer.Option(
            "--approve",
            metavar="MODE",
            help="Tools with side effects: auto allows them, ask asks in the terminal, deny denies them.",
        ),
    ] = "ask",
    budget_tokens: Annotated[
        int | None, typer.Option("--budget-tokens", min=0, help="At most so many computed tokens.")
    ] = None,
    budget_seconds: Annotated[
        float | None, typer.Option("--budget-seconds", min=0.1, help="At most so many seconds.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record", metavar="DIR", help="Write the run to a folder, for `agents replay`."
        ),
    ] = None,
    *,
    flags: dict[str, Any],
) -> None:
    """Run one agent on files or a text.

    Exits with 0 if no finding has the severity of --fail-on and a verdict passed, 1 if one has or it did not,
    2 if the run failed, 3 if the verdict was not judged, as the tests could not run. Ctrl+C ends
    the run and prints the partial result.
    """
    from app.commands.agents.running import RunOptions, run_agent

    given = {**(context.obj or {}), **flags}
    refuse_remote_contradictions(given)
    if as_json and sarif is not None and str(sarif) == "-":
        raise typer.BadParameter("--json and --sarif - both print to standard output")
    options = RunOptions(
        key=key,
        paths=tuple(paths or ()),
        task=task,
        base=base,
        as_json=as_json,
        sarif=sarif,
        use_model=not no_model,
        fail_on=fail_on,
        approve=approve,
        budget_tokens=budget_tokens,
        budget_seconds=budget_seconds,
        record=record,
    )
    raise typer.Exit(run_agent(options, given))


@agents_app.command()
@setting_options("engine", "remote")
def repair(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(
            help="A file or folder to audit. The project around it (git, pyproject.toml) is copied."
        ),
    ],
    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="With --approve auto: write the diff to your files. With ask you are asked anyway.",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object with findings, decisions and the diff."),
    ] = False,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Detectors and fixers only: load no model.")
    ] = False,
    approve: Annotated[
        str,
        typer.Option(
            "--approve",
            metavar="MODE",
            help="Running the tests, keeping what tests do not prove, and writing the diff: ask asks in the "
            "terminal, auto allows the tests and keeps only what they prove, deny audits only.",
        ),
    ] = "ask",
    agents: Annotated[
        str, typer.Option("--agents", metavar="KEYS", help="The auditors, with commas between.")
    ] = "",
    min_severity: Annotated[
        str,
        typer.Option(
            "--min-severity",
            metavar="LEVEL",
            help="Repair findings from this severity on: info, low, medium, high or critical.",
        ),
    ] = "high",
    budget_tokens: Annotated[
        int | None, typer.Option("--budget-tokens", min=0, help="At most so many computed tokens.")
    ] = None,
    budget_seconds: Annotated[
        float | None, typer.Option("--budget-seconds", min=0.1, help="At most so many seconds.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="DIR",
            help="Write trajectory.jsonl, result.json and repair.diff to a folder.",
        ),
    ] = None,
    *,
    flags: dict[str, Any],
) -> None:
    """Audit a project and repair what its tests can prove, in a throw-away copy.

    Each critical or high finding gets the smallest patch that a fixer or a capable model knows, and a test
    that fails before it. The patch stays only if that test and all others pass after it; the reason of each
    decision is printed. Your files are only written at the end, all or none, after you have seen the diff,
    and not if they changed meanwhile. Running a project's tests executes its code: you are asked first.
    Ctrl+C leaves your files as they are and prints the partial result.

    Exits with 0 if the score reached its bar (90, 80 and 70 of 100 in rounds one to three), no critical
    finding is open and the tests pass, or if nothing was to be repaired; with 1 if findings remain or tests
    fail, 2 if the repair failed, 3 if it was not judged, as the tests did not run.
    """
    from app.commands.agents.repairing import RepairArguments, run_repair

    given = {**(context.obj or {}), **flags}
    refuse_remote_contradictions(given)
    arguments = RepairArguments(
        path=path,
        apply=apply,
        as_json=as_json,
        use_model=not no_model,
        approve=approve,
        agents=agents,
        min_severity=min_severity,
        budget_tokens=budget_tokens,
        budget_seconds=budget_seconds,
        record=record,
    )
    raise typer.Exit(run_repair(arguments, given))


@agents_app.command()
@setting_options("engine", "remote")
def replay(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder of `agents run --record`.")],
    as_json: JsonOption = False,
    *,
    flags: dict[str, Any],
) -> None:
    """Run a recorded agent again with the recorded answers, and compare the events.

    Files are read again; the model, approvals and tools with side effects answer from the recording. Exits
    with 0 if the events are the same but for times and ids, with 1 if they differ.
    """
    from app.commands.agents.replaying import replay_run

    given = {**(context.obj or {}), **flags}
    refuse_remote_contradictions(given)
    raise typer.Exit(replay_run(folder, given, as_json=as_json))


def _roster() -> "Roster":
    from app.runtime.agents import open_registry, open_roster

    return open_roster(open_registry())
