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
    no_args_is_help=True, help="List, check, run and measure the agents; repair a project."
)

EXIT_FINDINGS = 1
EXIT_FAILED = 2
EXIT_UNJUDGED = 3
"""There is a verdict to give, and it was not given: the tests that decide it did not run."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
AllowModelOption = Annotated[
    bool,
    typer.Option(
        "--allow-model",
        help="Let the model take part in everything, whatever it was measured to do; the result says so.",
    ),
]
KeyArgument = Annotated[str, typer.Argument(help="The agent's key, as `agents list` shows it.")]


@agents_app.command("list")
def list_agents(
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="A model: a name that `models list` shows, a file or a folder."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show every agent, and what it uses the model for."""
    from app.commands.agents.listing import agent_fields, print_agents
    from app.runtime.model_profile import installed_profile
    from app.settings.sources import load_settings
    from engine.api.errors import ModelError

    with one_sentence_errors():
        roster = _roster()
        try:
            installed = installed_profile(load_settings({} if model is None else {"model": model}))
        except ModelError:
            if model is not None:
                raise
            installed = None  # nothing is installed yet
        if as_json:
            profile = None if installed is None else installed.profile
            fields = [agent_fields(spec, profile) for spec in roster]
            told = {"model": None if installed is None else installed.name, "agents": fields}
            print(json.dumps(told, indent=2))
        else:
            print_agents(roster, installed)


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
    allow_model: AllowModelOption = False,
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
    _refuse_no_model(no_model=no_model, allow_model=allow_model)
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
        allow_model=allow_model,
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
        bool,
        typer.Option("--no-model", help="Detectors, usual slips and fixers only: load no model."),
    ] = False,
    allow_model: AllowModelOption = False,
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
    """Repair what makes a project's tests fail, then findings, as far as tests prove it, in a copy.

    What makes a test fail is looked for among usual slips, then by a model that was measured to write code.
    After that, each critical or high finding gets the smallest patch that a fixer or such a model knows, and
    a test that fails before it. A patch stays only if that test and all others pass after it; the reason of
    each decision is printed. Your files are only written at the end, all or none, after you have seen the
    diff, and not if they changed meanwhile. Running a project's tests executes its code: you are asked first.
    Ctrl+C leaves your files as they are and prints the partial result.

    Exits with 0 if the score reached its bar (90, 80 and 70 of 100 in rounds one to three), no critical
    finding is open and the tests pass, or if no finding called for a repair and the tests were not run; with
    1 if findings remain or tests fail, 2 if the repair failed, 3 if findings called for a repair and it was
    not judged, as the tests did not run.
    """
    from app.commands.agents.repairing import RepairArguments, run_repair

    given = {**(context.obj or {}), **flags}
    refuse_remote_contradictions(given)
    _refuse_no_model(no_model=no_model, allow_model=allow_model)
    arguments = RepairArguments(
        path=path,
        apply=apply,
        as_json=as_json,
        use_model=not no_model,
        allow_model=allow_model,
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
def profile(
    context: typer.Context,
    measured: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help="The model: a name that `models list` shows, a file or a folder.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the results as JSON; - prints them."),
    ] = None,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="For developers: add them to the profiles that come with the program."
        ),
    ] = False,
    *,
    flags: dict[str, Any],
) -> None:
    """Measure what a model can do for the agents: some minutes, with progress.

    Measured are one-token answers, short answers, functions (which are run), loops of tools, the outputs of
    the agents, and which one-token questions beat the detectors. The results are kept in the cache folder by
    the model's contents, and what they allow is switched on when the model is loaded. Ctrl+C keeps nothing.
    """
    from app.commands.agents.profiling import ProfileArguments, run_profile

    given = {**(context.obj or {}), **flags}
    if measured is not None:
        if flags.get("model") not in (None, measured):
            both = f"{measured} and --model {flags['model']}"
            raise typer.BadParameter(f"{both} contradict each other")
        given["model"] = measured
    refuse_remote_contradictions(given)
    raise typer.Exit(run_profile(ProfileArguments(json_file, write), given))


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


def _refuse_no_model(*, no_model: bool, allow_model: bool) -> None:
    if no_model and allow_model:
        raise typer.BadParameter("--no-model and --allow-model contradict each other")


def _roster() -> "Roster":
    from app.runtime.agents import open_registry, open_roster

    return open_roster(open_registry())
