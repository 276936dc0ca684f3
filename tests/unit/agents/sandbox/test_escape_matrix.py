"""No attempt to leave a sandbox succeeds, in any implementation that this machine has."""

import ast
import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from agents.sandbox.policy import SandboxPolicy
from agents.sandbox.sandbox import Command
from agents.sandbox.unconfined import Unconfined

SOURCE = (Path(__file__).parent / "attempts.py").read_text()
NAMES = [node.name for node in ast.parse(SOURCE).body if isinstance(node, ast.FunctionDef)]
ATTEMPTS = [name for name in NAMES if name not in ("read", "write", "call", "outcome")]
WORKING = [name for name in ATTEMPTS if name.startswith("works_")]
ESCAPES = [name for name in ATTEMPTS if not name.startswith("works_")]

SUCCEED_UNCONFINED = [
    "read_secret", "read_secret_by_relative_path", "read_secret_through_a_link",
    "read_secret_through_a_linked_folder", "read_secret_through_a_hard_link", "read_secret_through_proc",
    "list_outside", "write_outside", "write_outside_through_a_link", "connect_to_loopback",
    "connect_to_unix_socket", "connect_to_abstract_socket", "send_to_unix_socket_from_a_pair",
    "signal_foreign_process", "write_git_configuration", "make_setuid_file", "read_home",
    "limit_foreign_process",
    "system_v_memory",
]  # fmt: skip
"""Attempts that need no privileges: without a sandbox they succeed, so a refusal is the sandbox's doing."""


def command(place, *attempts):
    given = json.dumps({**place.given, "attempts": list(attempts)})
    words = [os.path.realpath(sys.executable), "-I", "-S", "-c", SOURCE, given]
    return Command(words, folder=place.root)


def clean(place):
    shutil.rmtree(place.root / "src")
    (place.root / "src").mkdir()


@pytest.fixture(scope="module")
def outcomes(sandbox, place):
    """What came of every attempt; the caller has secrets in its environment and an open descriptor."""
    clean(place)
    leaked = os.open(place.secret, os.O_RDONLY)
    os.set_inheritable(leaked, True)
    os.environ["PRAVAHA_TEST_SECRET"] = place.given["word"]
    try:
        done = asyncio.run(sandbox.run(command(place), SandboxPolicy(writable=(place.root,))))
    finally:
        os.close(leaked)
        del os.environ["PRAVAHA_TEST_SECRET"]
    assert done.status == 0, done.output.text
    return json.loads(done.output.text)


@pytest.mark.parametrize("attempt", ESCAPES)
def test_an_attempt_to_escape_fails(outcomes, attempt):
    assert not outcomes[attempt]["done"], outcomes[attempt]


@pytest.mark.parametrize("attempt", WORKING)
def test_ordinary_work_is_possible(outcomes, attempt):
    assert outcomes[attempt]["done"], outcomes[attempt]


def test_nothing_outside_was_changed(outcomes, place):
    assert place.secret.read_text() == "the secret"
    assert sorted(path.name for path in place.outside.iterdir()) == ["d", "s", "secret.txt"]
    assert (place.root / ".git" / "config").read_text() == "[core]\n"
    assert place.foreign.poll() is None


async def test_the_attempts_succeed_without_a_sandbox(place, tmp_path):
    """So the matrix tests something."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "src").mkdir()
    (tmp_path / "outside").mkdir()
    secret = tmp_path / "outside" / "secret.txt"
    secret.write_text("the secret")
    place.given = place.given | {
        "root": str(tmp_path / "project"), "outside": str(tmp_path / "outside"), "secret": str(secret)
    }  # fmt: skip
    done = await Unconfined().run(command(place, *SUCCEED_UNCONFINED), SandboxPolicy())
    outcomes = json.loads(done.output.text)
    assert {name: one for name, one in outcomes.items() if not one["done"]} == {}
