"""What a command may use: memory, processes, files, time, output. Nothing survives it."""

import asyncio
import fcntl
import os
import sys

import pytest

from agents.sandbox import cgroup
from agents.sandbox.captured_output import HEAD_BYTES, MAX_ARTIFACT_BYTES, TAIL_BYTES
from agents.sandbox.policy import Limits, SandboxPolicy
from agents.sandbox.sandbox import Command

MIB = 1 << 20
PYTHON = [os.path.realpath(sys.executable), "-I", "-S", "-c"]

DAEMON = """
import fcntl, os, sys, time
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1), os.close(2)
        time.sleep(600)
    os._exit(0)
print("started", flush=True)
"""
"""Leaves a process in a session of its own, which holds a lock."""

FORKS = """
import os, time
for count in range(2_000):
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError:
        print("refused", count)
        break
else:
    print("all were started", flush=True)
    time.sleep(600)
"""


def run(sandbox, folder, source, *arguments, artifact=None, progress=lambda text: None, **limits):
    command = Command([*PYTHON, source, *arguments], folder, artifact=artifact, progress=progress)
    return sandbox.run(command, SandboxPolicy(writable=(folder,), limits=Limits(**limits)))


def is_locked(path):
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


async def test_private_memory_is_limited(sandbox, tmp_path):
    done = await run(sandbox, tmp_path, "bytearray(1 << 29)", memory_bytes=256 * MIB)
    assert done.status != 0
    assert "MemoryError" in done.output.text or done.status < 0


async def test_shared_memory_is_limited(sandbox, tmp_path):
    source = (
        "import mmap; m = mmap.mmap(-1, 1 << 29); print('mapped'); m.write(bytes(1 << 20) * 512)"
    )
    done = await run(sandbox, tmp_path, source, memory_bytes=64 * MIB)
    assert done.status != 0


async def test_a_fork_bomb_ends(sandbox, tmp_path):
    done = await run(sandbox, tmp_path, FORKS, processes=40)
    assert "refused" in done.output.text or done.ended_by == "the limit of processes"


async def test_files_are_limited_in_size(sandbox, tmp_path):
    source = "import sys; f = open('big', 'wb', 0); [f.write(bytes(1 << 16)) for _ in range(64)]"
    done = await run(sandbox, tmp_path, source, file_bytes=MIB)
    assert done.status != 0
    assert (tmp_path / "big").stat().st_size <= MIB


async def test_processor_time_is_limited(sandbox, tmp_path):
    done = await run(sandbox, tmp_path, "while True: pass", cpu_s=1)
    assert done.status < 0
    assert not done.ended_by


async def test_descriptors_are_limited(sandbox, tmp_path):
    source = "import os; [os.dup(1) for _ in range(200)]"
    done = await run(sandbox, tmp_path, source, open_files=64)
    assert "Too many open files" in done.output.text


async def test_endless_output_is_read_and_bounded(sandbox, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    source = "import os\nwhile True: os.write(1, b'0123456789abcde\\n' * 4096)"
    done = await run(sandbox, root, source, artifact=tmp_path / "out.log", wall_s=0.6)
    output = done.output
    assert done.ended_by == "the time limit"
    assert (len(output.head), len(output.tail)) == (HEAD_BYTES, TAIL_BYTES)
    assert output.artifact.stat().st_size == min(output.size, MAX_ARTIFACT_BYTES)
    assert output.size > HEAD_BYTES + TAIL_BYTES


@pytest.mark.parametrize("after", ["", "time.sleep(600)"])
async def test_nothing_survives_a_command(sandbox, tmp_path, after):
    """Whether it ends by itself or its time is over."""
    root = tmp_path / "root"
    root.mkdir()
    done = await run(sandbox, root, DAEMON + after, str(root / "lock"), wall_s=1.0)
    assert "started" in done.output.text
    assert done.ended_by == ("the time limit" if after else "")
    assert not is_locked(root / "lock")


async def test_cancelling_kills_everything(sandbox, tmp_path):
    started = asyncio.Event()
    running = asyncio.ensure_future(
        run(
            sandbox,
            tmp_path,
            DAEMON + "time.sleep(600)",
            str(tmp_path / "lock"),
            progress=lambda text: started.set(),
        )
    )
    await started.wait()
    assert is_locked(tmp_path / "lock")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_locked(tmp_path / "lock")


async def test_the_private_folder_is_removed_whatever_is_left_in_it(sandbox, tmp_path):
    source = """
import os
home = os.environ["HOME"]
os.makedirs(home + "/a/b")
os.symlink("/", home + "/a/root")
os.chmod(home + "/a", 0)
print(os.path.dirname(home))
"""
    done = await run(sandbox, tmp_path, source)
    assert not os.path.lexists(done.output.text.strip())


async def test_a_new_git_folder_is_removed(sandbox, tmp_path):
    source = "import os; os.mkdir('.git'); open('.git/config', 'w').write('[core]'); open('x', 'w')"
    done = await run(sandbox, tmp_path, source)
    assert done.status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


async def test_a_missing_program_is_named(sandbox, tmp_path):
    done = await sandbox.run(
        Command(["no-such-program"], tmp_path), SandboxPolicy(readable=(tmp_path,))
    )
    assert (done.status, done.absent) == (127, "No such file or directory")


async def test_without_a_control_group_a_fork_bomb_ends_too(sandbox, tmp_path, monkeypatch):
    """By the kernel's limit of processes; for the superuser, whom it exempts, by counting them."""
    monkeypatch.setattr(cgroup, "parent_folders", tuple)
    done = await run(sandbox, tmp_path, FORKS, processes=40)
    assert "refused" in done.output.text or done.ended_by == "the limit of processes"
    assert "all were started" not in done.output.text
