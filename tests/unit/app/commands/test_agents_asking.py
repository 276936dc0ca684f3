"""What the terminal shows of a call that waits."""

import asyncio
import os

import pytest

from agents.runs.approvals import ApprovalRequest, Approvals
from agents.tools.tool import Effect
from app.commands.agents.asking import TerminalApprover

DIFF = "--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


@pytest.mark.parametrize(
    ("arguments", "diff", "shown"),
    [
        ('{"path": "f.py", "content": "x = 2"}', "", "path\n  | f.py\ncontent\n  | x = 2\n"),
        ('{"path": "f.py", "content": "x = 2"}', DIFF, DIFF),
        (DIFF, DIFF, DIFF),
        (f"x is odd\n\n{DIFF}", DIFF, f"x is odd\n\n{DIFF}"),
    ],
)
async def test_a_change_is_shown_as_its_diff(arguments, diff, shown, monkeypatch, capsys):
    reading, writing = os.pipe()
    os.write(writing, b"y\n")
    request = ApprovalRequest(
        "1", "r", "coder", "write", arguments, "f.py", frozenset({Effect.WRITE}), "/p", diff=diff
    )
    approvals = Approvals()
    with os.fdopen(reading) as stdin, TerminalApprover(approvals):
        monkeypatch.setattr("sys.stdin", stdin)
        await asyncio.wait_for(approvals.ask(request), 60)
    os.close(writing)
    said = capsys.readouterr().err
    assert f" in /p\n{shown}" in said
    assert said.count("x = 2") == 1
