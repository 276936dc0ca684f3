"""`edit` and `write`: what they change, and what an approver is shown before."""

import asyncio

import pytest

from agents.api.agent_spec import AgentSpec
from agents.api.budget import Budget, BudgetMeter
from agents.runs.approvals import Approvals
from agents.runs.event_log import EventLog
from agents.runs.tool_executor import ToolExecutor
from agents.tools.edit import EDIT, diff_of
from agents.tools.read import READ
from agents.tools.tool import ToolContext
from agents.tools.write import WRITE


def executor(root):
    return ToolExecutor(
        AgentSpec("chat", "execution", "", "", (), (), "Answer"),
        {tool.name: tool for tool in (READ, EDIT, WRITE)},
        ToolContext(root),
        EventLog("run"),
        BudgetMeter(Budget(), started=0.0),
        Approvals(),
    )


async def asked(tools, name, **arguments):
    """The request that a call makes, and the call."""
    call = asyncio.ensure_future(tools.call(name, arguments))
    while not call.done() and not tools.approvals.pending:
        await asyncio.sleep(0)
    pending = tools.approvals.pending
    return (pending[0] if pending else None), call


async def test_an_approver_sees_the_diff_and_the_result_has_it(project):
    tools = executor(project)
    await tools.call("read", {"path": "src/a.py"})
    request, call = await asked(tools, "edit", path="src/a.py", old="return 42", new="return 43")
    assert "-    return 42\n+    return 43\n" in request.diff
    assert "def answer():" in request.diff  # with the lines around it
    assert "43" not in (project / "src/a.py").read_text()
    tools.approvals.decide(request.id, "once")
    output = await call
    assert "+    return 43" in output.text
    assert "43" in (project / "src/a.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"path": "src/a.py", "old": "return 41", "new": "x"}, "The passage is not in src/a.py"),
        ({"path": "src/a.py", "old": "o", "new": "x"}, "times in src/a.py: give more of its lines"),
        ({"path": "src/b.py", "old": "hello", "new": "x"}, "Read src/b.py before changing it"),
        ({"path": "src/c.py", "old": "x", "new": "y"}, "Read src/c.py before"),
        ({"path": "../outside.txt", "old": "x", "new": "y"}, "not a path beneath"),
    ],
)
async def test_nobody_is_asked_about_an_edit_that_would_fail(project, arguments, sentence):
    tools = executor(project)
    await tools.call("read", {"path": "src/a.py"})
    request, call = await asked(tools, "edit", **arguments)
    assert request is None
    output = await call
    assert output.failed
    assert sentence in output.text


async def test_an_approver_sees_what_a_written_file_replaces(project):
    tools = executor(project)
    request, call = await asked(tools, "write", path="new.py", content="x = 1\n")
    assert request.diff == "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
    tools.approvals.decide(request.id, "once")
    assert not (await call).failed
    request, call = await asked(tools, "write", path="src/a.py", content="x = 1\n")
    assert request is None
    assert "exists already: read it before" in (await call).text
    await tools.call("read", {"path": "src/a.py"})
    request, call = await asked(tools, "write", path="src/a.py", content="x = 1\n")
    assert "-import os" in request.diff
    call.cancel()


async def test_a_file_that_changes_while_somebody_is_asked_is_not_edited(project):
    tools = executor(project)
    await tools.call("read", {"path": "src/a.py"})
    request, call = await asked(tools, "edit", path="src/a.py", old="return 42", new="return 43")
    (project / "src/a.py").write_text("def answer():\n    return 42\n")
    tools.approvals.decide(request.id, "once")
    assert "has changed since it was read" in (await call).text


def test_a_path_stays_on_its_line_of_the_diff():
    assert "\n+fake" not in diff_of("a\n+fake.py", "x\n", "y\n").split("@@")[0]
