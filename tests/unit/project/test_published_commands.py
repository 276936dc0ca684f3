"""Commands, tests and make targets that README and docs name exist and take the flags given there.

Their output depends on the machine and is not checked here.
"""

import re
from pathlib import Path

import typer

from app.cli import cli

ROOT = Path(__file__).parents[3]
NOTEBOOK = [
    path
    for path in sorted((ROOT / "docs" / "notebook").glob("*.md"))
    if "\n\nCurrent" in path.read_text()
]
"""The pages whose commands still run; a superseded page keeps those of its day."""
TEXT = "\n".join(
    path.read_text()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *NOTEBOOK]
)
MAKEFILE = (ROOT / "Makefile").read_text()
FLAG = re.compile(r"--[a-z][a-z0-9-]*")


def named(pattern):
    """What a pattern's groups found in README and docs, each once."""
    return sorted(set(re.findall(pattern, TEXT)))


SCRIPTS = named(r"python (benchmarks/\w+\.py)([^`\n]*)")
TESTS = named(r"pytest (?:-s )?(tests/[\w/]+\.py)")
EXAMPLES = named(r"cargo run --release --example (\w+)")
TARGETS = named(r"(?m)(?:`|^    |or: )make ([a-z-]+)")
COMMANDS = named(r"pravaha((?: (?:run|bench|chat|models|doctor))?)((?: [^`|#\n]*)?--[^`|#\n]*)")


def script_flags(script):
    """The source that declares a script's flags: its own and that of the functions it adds them by."""
    source = (ROOT / script).read_text()
    for module in re.findall(r"from benchmarks\.(\w+) import (?:\([^)]*|[^(\n]*)\badd_", source):
        source += (ROOT / "benchmarks" / f"{module}.py").read_text()
    return source


def command_flags(subcommand, arguments):
    """The options of the command that `arguments` reach."""
    command = typer.main.get_command(cli)
    if subcommand:
        command = command.commands[subcommand.strip()]
    for word in arguments.split():
        command = getattr(command, "commands", {}).get(word, command)
    return {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }


def test_65_a_published_benchmark_takes_the_flags_it_is_published_with():
    unknown = [
        (script, flag)
        for script, arguments in SCRIPTS
        for flag in FLAG.findall(arguments)
        if f'"{flag}"' not in script_flags(script)
    ]
    assert unknown == []


def test_65_a_published_command_takes_its_flags():
    unknown = [
        (f"pravaha{subcommand}", sorted(flags))
        for subcommand, arguments in COMMANDS
        if (flags := set(FLAG.findall(arguments)) - command_flags(subcommand, arguments))
    ]
    assert unknown == []


def test_65_published_tests_examples_and_make_targets_exist():
    missing = [path for path in TESTS if "def test_" not in (ROOT / path).read_text()]
    missing += [name for name in EXAMPLES if not list(ROOT.glob(f"rust_core/*/examples/{name}.rs"))]
    missing += [name for name in TARGETS if not re.search(rf"(?m)^{name}:", MAKEFILE)]
    assert missing == []


def test_65_there_is_something_to_check():
    assert len(NOTEBOOK) >= 5
    assert len(SCRIPTS) >= 6
    assert TESTS
    assert EXAMPLES
    assert {"bench", "soak", "gpu"} <= set(TARGETS)
    assert len(COMMANDS) >= 4
