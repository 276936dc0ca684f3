"""Every published figure stands beside the command it came from; such commands exist and take their flags.

What they print depends on the machine and is compared by people.
"""

import re
from pathlib import Path

import pytest
import typer

from app.cli import cli

ROOT = Path(__file__).parents[3]
TEXT = "\n".join(
    path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
)
MAKEFILE = (ROOT / "Makefile").read_text()
FLAG = re.compile(r"--[a-z][a-z-]*")


def named(pattern):
    """What a pattern's groups found in README and docs, each once."""
    return sorted(set(re.findall(pattern, TEXT)))


SCRIPTS = named(r"python (benchmarks/\w+\.py)([^`\n]*)")
TESTS = named(r"pytest (?:-s )?(tests/[\w/]+\.py)")
EXAMPLES = named(r"cargo run --release --example (\w+)")
TARGETS = named(r"(?m)(?:`|^    |or: )make ([a-z-]+)")
COMMANDS = named(r"pravaha((?: (?:run|bench|chat|models|doctor))?)((?: [^`|#\n]*)?--[^`|#\n]*)")


@pytest.mark.parametrize(("script", "arguments"), SCRIPTS)
def test_65_a_published_benchmark_takes_the_flags_it_is_published_with(script, arguments):
    source = (ROOT / script).read_text()
    # Scripts share flags by functions that add them.
    for module in re.findall(r"from benchmarks\.(\w+) import (?:\([^)]*|[^(\n]*)\badd_", source):
        source += (ROOT / "benchmarks" / f"{module}.py").read_text()
    missing = [flag for flag in FLAG.findall(arguments) if f'"{flag}"' not in source]
    assert missing == []


@pytest.mark.parametrize("path", TESTS)
def test_65_a_test_that_prints_published_figures_exists(path):
    assert "def test_" in (ROOT / path).read_text()


@pytest.mark.parametrize("example", EXAMPLES)
def test_65_a_published_example_exists(example):
    assert list(ROOT.glob(f"rust_core/*/examples/{example}.rs"))


@pytest.mark.parametrize("target", TARGETS)
def test_65_a_published_make_target_exists(target):
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize(("subcommand", "arguments"), COMMANDS)
def test_65_a_published_command_takes_its_flags(subcommand, arguments):
    command = typer.main.get_command(cli)
    if subcommand:
        command = command.commands[subcommand.strip()]
    for word in arguments.split():
        command = getattr(command, "commands", {}).get(word, command)
    known = {option for parameter in command.params for option in parameter.opts}
    known |= {option for parameter in command.params for option in parameter.secondary_opts}
    assert set(FLAG.findall(arguments)) <= known


def test_65_there_is_something_to_check():
    assert len(SCRIPTS) >= 6
    assert TESTS
    assert EXAMPLES
    assert {"bench", "soak", "gpu"} <= set(TARGETS)
    assert len(COMMANDS) >= 4
