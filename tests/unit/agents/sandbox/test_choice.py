"""Which sandbox is used, and what happens where layers are missing."""

import pytest

from agents.sandbox import choice
from agents.sandbox.choice import landlock_here, open_sandbox
from agents.sandbox.sandbox import Layer, SandboxFailed, SandboxUnavailable
from agents.sandbox.self_test import self_test
from agents.sandbox.unconfined import Unconfined
from tests.unit.agents.sandbox.conftest import sandbox_here

ALWAYS = {Layer.ENVIRONMENT, Layer.LIMITS, Layer.PRIVILEGES, Layer.SECCOMP}


@pytest.fixture(autouse=True)
def nothing_found(monkeypatch):
    monkeypatch.setattr(choice, "_found", {})


def kernel(monkeypatch, *, abi, filters=True):
    monkeypatch.setattr(choice, "_kernel", lambda: (abi, filters))


def test_every_sandbox_has_the_layers_that_are_always_required(sandbox):
    assert set(sandbox.active_layers) >= ALWAYS
    files = {Layer.MOUNTS, Layer.LANDLOCK} & set(sandbox.active_layers)
    assert files


async def test_without_bubblewrap_landlock_is_used(monkeypatch):
    if isinstance(sandbox_here("landlock"), str):
        pytest.skip(sandbox_here("landlock"))
    monkeypatch.setattr(choice, "bubblewrap_program", lambda: None)
    assert (await open_sandbox()).name == "landlock"


async def test_a_bubblewrap_that_does_not_work_is_not_used(monkeypatch, tmp_path):
    if isinstance(sandbox_here("landlock"), str):
        pytest.skip(sandbox_here("landlock"))
    broken = tmp_path / "bwrap"
    broken.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    monkeypatch.setattr(choice, "bubblewrap_program", lambda: str(broken))
    assert (await open_sandbox()).name == "landlock"
    with pytest.raises(SandboxUnavailable, match="No permissions to create new namespace"):
        await open_sandbox("bubblewrap")


async def test_without_any_layer_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(choice, "bubblewrap_program", lambda: None)
    kernel(monkeypatch, abi=0)
    with pytest.raises(SandboxUnavailable) as raised:
        await open_sandbox()
    assert str(raised.value) == (
        "Commands cannot be run in a sandbox here. bubblewrap is not installed. "
        "This kernel has no Landlock (Linux 5.13 or newer has it)."
    )


async def test_seccomp_is_required(monkeypatch):
    kernel(monkeypatch, abi=7, filters=False)
    with pytest.raises(SandboxUnavailable, match="no seccomp filters"):
        await open_sandbox("landlock")


async def test_landlock_alone_has_to_keep_signals_inside(monkeypatch):
    kernel(monkeypatch, abi=5)
    with pytest.raises(SandboxUnavailable, match="does not keep signals inside"):
        await landlock_here(namespaces=False)


async def test_a_refusal_is_remembered_and_raised_again(monkeypatch):
    monkeypatch.setattr(choice, "bubblewrap_program", lambda: None)
    for _ in range(2):
        with pytest.raises(SandboxUnavailable, match="not installed"):
            await open_sandbox("bubblewrap")
    assert await open_sandbox("off") is await open_sandbox("off")


async def test_the_self_test_finds_a_sandbox_that_confines_nothing():
    with pytest.raises(SandboxFailed, match="could reach files outside"):
        await self_test(Unconfined(), landlock=False, cgroup=False)
