"""The `git` tool shows history and runs nothing that a repository configures."""

import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from agents.tools.git import GIT, GitArguments


def _configure(root: Path, *lines: tuple[str, str]) -> None:
    for name, value in lines:
        subprocess.run(["git", "-C", str(root), "config", name, value], check=True)


@pytest.fixture
def hostile(repository: Path, tmp_path: Path) -> Path:
    """A repository whose configuration runs a command wherever git would allow it; returns its marker."""
    marker = tmp_path / "executed"
    script = tmp_path / "run.sh"
    script.write_text(f'#!/bin/sh\necho "$0 $@" >> {marker}\ncat\n')
    script.chmod(0o755)
    command = str(script)
    _configure(
        repository,
        ("core.fsmonitor", command),
        ("core.pager", command),
        ("core.hooksPath", str(tmp_path / "hooks")),
        ("core.sshCommand", command),
        ("diff.external", command),
        ("diff.evil.textconv", command),
        ("diff.evil.command", command),
        ("filter.evil.clean", command),
        ("filter.evil.smudge", command),
        ("filter.two.process", command),
        ("filter.two.required", "true"),
        ("gpg.program", command),
        ("log.showSignature", "true"),
        ("alias.log", f"!{command}"),
    )
    (repository / ".gitattributes").write_text("*.py diff=evil filter=evil\n*.md filter=two\n")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "post-checkout"):
        (hooks / name).write_text(script.read_text())
        (hooks / name).chmod(0o755)
    for path in ("src/a.py", "README.md"):
        with (repository / path).open("a") as file:
            file.write("# changed\n")
    return marker


ACTIONS = [
    {"action": "log"},
    {"action": "show", "revision": "HEAD"},
    {"action": "diff"},
    {"action": "diff", "revision": "HEAD"},
    {"action": "blame", "path": "src/a.py"},
    {"action": "status"},
]


@pytest.mark.parametrize("arguments", ACTIONS, ids=lambda a: " ".join(a.values()))
async def test_no_command_of_the_configuration_runs(call, hostile, arguments):
    output = await call(GIT, **arguments)
    assert not output.failed, output.text
    assert not hostile.exists(), hostile.read_text()


async def test_the_repository_would_run_commands_without_the_options(repository, hostile):
    subprocess.run(["git", "-C", str(repository), "status"], capture_output=True, check=False)
    assert hostile.exists()


async def test_what_it_shows(call, repository):
    assert "First" in (await call(GIT, action="log")).text
    assert "def answer" in (await call(GIT, action="show", revision="HEAD")).text
    assert "def answer" in (await call(GIT, action="blame", path="src/a.py")).text
    (repository / "src" / "a.py").write_text("changed\n")
    assert "+changed" in (await call(GIT, action="diff")).text
    assert " M src/a.py" in (await call(GIT, action="status")).text


async def test_a_folder_within_a_repository_shows_nothing_beside_it(call, context, repository):
    context.root = repository / "src"
    assert "README" not in (await call(GIT, action="show", revision="HEAD")).text
    (repository / "README.md").write_text("changed\n")
    assert (await call(GIT, action="diff")).text == "Nothing."


@pytest.mark.parametrize("revision", ["--output=/tmp/x", "-p", "HEAD:../x\n", "a b", "HEAD;id"])
def test_revisions_that_are_options_or_commands_are_refused(revision):
    with pytest.raises(ValidationError):
        GitArguments(action="show", revision=revision)


@pytest.mark.parametrize("action", ["commit", "push", "config", "clone"])
def test_other_commands_are_refused(action):
    with pytest.raises(ValidationError):
        GitArguments(action=action)


async def test_a_folder_without_history_is_a_failure(call):
    output = await call(GIT, action="log")
    assert output.failed
    assert "not a git repository" in output.text
