"""`pravaha doctor`: reports the machine, the configuration in effect and missing parts."""

import json
from typing import Annotated, Any

import typer

from app.commands.outcome import EXIT_ERROR, one_sentence_errors
from app.commands.setting_options import setting_options


@setting_options("engine", "agents")
def doctor(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    *,
    flags: dict[str, Any],
) -> None:
    """Report what this machine has, what will be used, and how to get what is missing.

    The exit status is 1 if there is a problem.
    """
    with one_sentence_errors():
        import os
        import platform
        from importlib import metadata

        from app.doctor.facts import Fact, Section, to_json, to_lines
        from app.doctor.models import memory, models
        from app.doctor.network import network
        from app.doctor.processor import processor
        from app.doctor.sandbox import sandbox
        from app.doctor.scheduling import scheduling
        from app.doctor.storage import storage
        from app.doctor.terminal import terminal
        from app.settings.sources import load_settings

        settings = load_settings({**(context.obj or {}), **flags})
        version, python, system = (
            metadata.version("pravaha"),
            platform.python_version(),
            platform.platform(),
        )
        sections = [
            Section(
                "pravaha",
                "Pravāha",
                (
                    Fact("version", "version", version, version),
                    Fact("python", "Python", python, python),
                    Fact("system", "system", system, system),
                ),
            ),
            processor(settings),
            memory(settings),
            models(settings),
            scheduling(settings),
            sandbox(settings),
            network(settings),
            terminal(settings, os.environ),
            storage(settings, os.environ),
        ]
        if as_json:
            print(json.dumps(to_json(sections), ensure_ascii=False, indent=2))
        else:
            print("\n".join(to_lines(sections)))
    problems = any(fact.level == "problem" for section in sections for fact in section.facts)
    raise typer.Exit(EXIT_ERROR if problems else 0)
