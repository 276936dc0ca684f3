"""Networks and profiles of a policy, and what it refuses."""

import os
import sys
from pathlib import Path

import pytest

from agents.api.errors import InvalidTask
from agents.sandbox.policy import SandboxPolicy
from agents.sandbox.sandbox import Command, Layer, SandboxUnavailable

PYTHON = [os.path.realpath(sys.executable), "-I", "-S", "-c"]
SERVES = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    with socket.create_connection(server.getsockname()) as client:
        print("connected")
try:
    socket.create_connection(("127.0.0.1", int(__import__("sys").argv[1])), timeout=2)
    print("reached the machine")
except OSError as error:
    print("refused")
"""


async def test_the_loopback_network_is_the_sandboxes_own(sandbox, place):
    policy = SandboxPolicy(network="loopback", writable=(place.root,))
    command = Command([*PYTHON, SERVES, str(place.given["port"])], place.root)
    if Layer.NAMESPACES not in sandbox.active_layers:
        with pytest.raises(SandboxUnavailable, match="namespaces"):
            await sandbox.run(command, policy)
        return
    done = await sandbox.run(command, policy)
    assert done.output.text.split("\n")[:2] == ["connected", "refused"]


async def test_the_full_network_reaches_the_machine(sandbox, place):
    policy = SandboxPolicy(network="full", writable=(place.root,))
    command = Command([*PYTHON, SERVES, str(place.given["port"])], place.root)
    done = await sandbox.run(command, policy)
    assert "reached the machine" in done.output.text


async def test_readable_folders_are_not_writable(sandbox, place):
    source = "print(open('src/../.git/config').read()); open('new', 'w')"
    policy = SandboxPolicy(readable=(place.root,))
    done = await sandbox.run(Command([*PYTHON, source], place.root), policy)
    assert "[core]" in done.output.text
    assert done.status == 1
    assert not (place.root / "new").exists()


async def test_toolchains_of_the_home_folder_are_visible_to_developers_only(
    sandbox, tmp_path, monkeypatch
):
    home, root = tmp_path / "home", tmp_path / "root"
    (home / ".cargo" / "bin").mkdir(parents=True)
    (home / ".cargo" / "bin" / "tool").write_text("toolchain")
    (home / ".cargo" / "credentials.toml").write_text("token")
    root.mkdir()
    monkeypatch.setenv("HOME", str(home))
    read = f"""
for name in ("bin/tool", "credentials.toml"):
    try:
        print(open({str(home / ".cargo")!r} + "/" + name).read())
    except OSError:
        print("refused")
"""
    outputs = []
    for profile in ("restricted", "developer"):
        policy = SandboxPolicy(profile, writable=(root,))
        done = await sandbox.run(Command([*PYTHON, read], root), policy)
        outputs.append(done.output.text.split())
    assert outputs == [["refused", "refused"], ["toolchain", "refused"]]


def test_the_home_folder_is_not_opened(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "people" / "me"))
    (tmp_path / "people" / "me").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "people" / "me"):
        with pytest.raises(InvalidTask, match="home folder"):
            SandboxPolicy(writable=(folder,)).checked()


def test_a_link_to_the_home_folder_is_not_opened(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(InvalidTask, match="home folder"):
        SandboxPolicy(readable=(tmp_path / "link",)).checked()


def test_a_missing_folder_is_named():
    with pytest.raises(InvalidTask, match=r"cannot open /no/such/folder"):
        SandboxPolicy(readable=(Path("/no/such/folder"),)).checked()
