"""The `python` tool computes, reads beneath the root, and stays within its limits."""

import asyncio
import os
from pathlib import Path

import pytest

from agents.tools import python as module
from agents.tools.python import PYTHON
from agents.tools.tool import Taint


async def test_it_returns_the_printed_text_and_the_last_value(call):
    output = await call(PYTHON, code="print('sum')\nsum(range(5))")
    assert output.data["output"] == "sum\n"
    assert output.data["value"] == "10"
    assert output.text == "sum\n10"
    assert not output.failed


async def test_it_reads_files_of_the_project(call):
    code = "[p for p in files() if 'answer' in read_text(p)]"
    output = await call(PYTHON, code=code)
    assert output.data["value"] == "['src/a.py']"
    assert output.taint >= {Taint.UNTRUSTED, Taint.LOCAL}
    assert Taint.PRIVATE not in output.taint


async def test_a_secret_file_makes_the_output_private(call, project: Path):
    (project / ".env").write_text("TOKEN=x\n")
    output = await call(PYTHON, code="len(read_text('.env'))")
    assert Taint.PRIVATE in output.taint


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("open('/etc/passwd').read()", "PermissionError"),
        ("read_text('../outside.txt')", "not a path beneath"),
        ("read_text('/etc/passwd')", "not a path beneath"),
        ("import os\nos.environ", "not supported"),
        ("import subprocess", "ModuleNotFoundError"),
        ("().__class__.__bases__[0].__subclasses__()", "AttributeError"),
        ("'a' * (1 << 30)", "MemoryError"),
        ("def f():\n    return f()\nf()", "RecursionError"),
        ("print('x' * 3_000_000)", "MemoryError"),
        ("import time\ntime.sleep(60)", "TimeoutError"),
        ("1 +", "Expected an expression"),
    ],
)
async def test_what_it_refuses(call, code, reason):
    output = await call(PYTHON, code=code)
    assert output.failed
    assert reason in output.data["error"]


async def test_an_endless_loop_ends(call, monkeypatch):
    monkeypatch.setitem(module.LIMITS, "max_feed_duration_secs", 0.1)
    output = await call(PYTHON, code="while True: pass")
    assert "TimeoutError" in output.data["error"]


def _children() -> set[str]:
    tasks = Path(
        f"/proc/{os.getpid()}/task"
    ).iterdir()  # workers belong to the thread that made them
    return {pid for task in tasks for pid in (task / "children").read_text().split()}


async def test_cancelling_a_call_kills_its_worker(call):
    before = _children()
    task = asyncio.create_task(call(PYTHON, code="while True: pass"))
    while not _children() - before:
        await asyncio.sleep(0)
    worker = (_children() - before).pop()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(1_000):
        if worker not in _children():
            break
        await asyncio.sleep(0.005)
    assert worker not in _children()
