"""The tool `shell`: what a command line means, and what running one returns."""

import asyncio
from pathlib import Path

import pytest

from agents.api.errors import InvalidTask
from agents.runs.approval_rules import parse_rule
from agents.sandbox import choice
from agents.tools.shell import SHELL
from agents.tools.shell_words import shell_words
from tests.unit.agents.sandbox.conftest import MAKERS, sandbox_here

SIMPLE = {
    "pytest -q": ("pytest", "-q"),
    "  pytest   tests/test_a.py::test_b  ": ("pytest", "tests/test_a.py::test_b"),
    "pytest -k 'a or b'": ("pytest", "-k", "a or b"),
    "pytest 'x; rm -rf /'": ("pytest", "x; rm -rf /"),
    'grep "a|b" file': ("grep", "a|b", "file"),
    "git show HEAD~1": ("git", "show", "HEAD~1"),
    "make CFLAGS=-O2": ("make", "CFLAGS=-O2"),
    "echo a#b": ("echo", "a#b"),
}
INTERPRETED = [
    "pytest x; rm -rf /", "pytest x && rm y", "pytest x || rm y", "pytest x | sh", "pytest x & rm y",
    "pytest x\nrm y", "pytest $(rm y)", "pytest `rm y`", 'pytest "$(rm y)"', "pytest $HOME", "pytest > out",
    "pytest < in", "(pytest)", "{ pytest; }", "pytest *.py", "pytest [a]", "pytest ~/x", "pytest \\; rm",
    "PATH=. pytest", "cd x", "exec pytest", "eval pytest", "source x", "! pytest", "pytest {a,b}", "# pytest",
]  # fmt: skip


@pytest.mark.parametrize("command", SIMPLE)
def test_a_simple_command_is_its_words(command):
    assert shell_words(command) == SIMPLE[command]


@pytest.mark.parametrize("command", INTERPRETED)
def test_anything_that_a_shell_would_interpret_is_a_command_of_the_shell(command):
    assert shell_words(command) == ("sh", "-c", command)


@pytest.mark.parametrize("command", INTERPRETED)
def test_a_rule_for_a_program_matches_no_longer_command(command):
    arguments = SHELL.arguments(command=command)
    for rule in ("shell: pytest *", "shell: cd *", "shell: PATH=. *"):
        assert not parse_rule(rule).matches("shell", SHELL.words(arguments))


@pytest.mark.parametrize("command", ["pytest 'x", '"', "a\0b", "   "])
def test_a_command_that_means_nothing_is_refused(command):
    with pytest.raises(InvalidTask):
        shell_words(command)


needs_sandbox = pytest.mark.skipif(
    all(isinstance(sandbox_here(name), str) for name in MAKERS), reason="no sandbox here"
)


@needs_sandbox
async def test_output_and_status_are_returned(call, context):
    output = await call(SHELL, command="cat README.md; echo wrong >&2; exit 3")
    assert output.failed
    assert output.data["status"] == 3
    assert output.text.startswith("# Project\nwrong\n[exit status 3 after ")


@needs_sandbox
async def test_the_project_can_be_changed_and_nothing_else(call, project):
    await call(SHELL, command="echo new > src/c.py; echo new > ../outside.txt")
    assert (project / "src" / "c.py").read_text() == "new\n"
    assert (project.parent / "outside.txt").read_text() == "outside the root\n"


@needs_sandbox
async def test_hooks_of_the_repository_cannot_be_written(call, repository):
    output = await call(SHELL, command="echo evil > .git/hooks/post-commit")
    assert output.failed
    assert not (repository / ".git" / "hooks" / "post-commit").exists()
    assert not (await call(SHELL, command="git log --oneline")).failed


@needs_sandbox
async def test_long_output_is_kept_in_an_artifact(call, context, tmp_path):
    context.artifacts = tmp_path / "artifacts"
    output = await call(SHELL, command="seq 100000")
    assert len(output.text) <= 16_000
    assert output.text.startswith("1\n2\n")
    assert "99999\n100000" in output.text
    artifact = output.data["artifact"]
    assert f"[588,895 bytes of output are in {artifact}]" in output.text
    assert len(Path(artifact).read_text().splitlines()) == 100_000


@needs_sandbox
async def test_a_command_ends_with_its_time(call):
    output = await call(SHELL, command="sleep 600", seconds=1)
    assert "killed by the time limit" in output.text
    assert output.failed


@needs_sandbox
async def test_output_is_shown_while_the_command_runs(call, context):
    arrived = asyncio.Event()
    context.progress = lambda text: arrived.set() if "ready" in text else None
    running = asyncio.ensure_future(call(SHELL, command="echo ready; sleep 600"))
    await arrived.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@needs_sandbox
async def test_a_printed_credential_taints_the_run(call):
    output = await call(SHELL, command=f"echo AKIA{'A' * 16}")
    assert "private" in output.taint


async def test_without_a_sandbox_nothing_is_run(call, project, monkeypatch):
    monkeypatch.setattr(choice, "_found", {})
    monkeypatch.setattr(choice, "bubblewrap_program", lambda: None)
    monkeypatch.setattr(choice, "_kernel", lambda: (0, False))
    output = await call(SHELL, command="touch made")
    assert output.failed
    assert output.text.startswith("Commands cannot be run in a sandbox here.")
    assert not (project / "made").exists()


async def test_without_the_sandbox_commands_run_when_it_is_off(call, context, project):
    context.sandbox = "off"
    assert not (await call(SHELL, command="touch made")).failed
    assert (project / "made").exists()
