"""Which tools a step may offer: those whose every call would be denied are left out."""

import pytest

from agents.api.agent_spec import AgentSpec
from agents.api.budget import Budget, BudgetMeter
from agents.runs.approvals import Approvals
from agents.runs.event_log import EventLog
from agents.runs.tool_executor import ToolExecutor
from agents.tools.tool import Taint, ToolContext
from agents.workspace.workspace import Workspace
from tests.fakes.step_tools import step_tools

FILES = Workspace.of_texts({"a.py": "x"})
READS = {"read", "grep", "status"}
BOTH = frozenset({Taint.UNTRUSTED, Taint.PRIVATE})


def executor(*, mode="auto", has_approver=False, calls=5, taint=frozenset({Taint.TRUSTED})):
    tools = {tool.name: tool for tool in step_tools(FILES)}
    spec = AgentSpec("t", "audit", "", "", tuple(tools), (), "Answer", permission_mode="auto")
    return ToolExecutor(
        spec=spec,
        tools=tools,
        context=ToolContext(root=FILES.root),
        log=EventLog("run"),
        meter=BudgetMeter(Budget(tools=calls), started=0.0),
        approvals=Approvals(has_approver=has_approver),
        mode=mode,
        taint=taint,
    )


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, READS | {"edit"}),
        ({"mode": "ask"}, READS),
        ({"mode": "ask", "has_approver": True}, READS | {"edit"}),
        ({"mode": "deny", "has_approver": True}, READS),
        ({"taint": BOTH}, READS),
        ({"taint": BOTH, "has_approver": True}, READS | {"edit"}),
        ({"calls": 0}, set()),
    ],
)
def test_tools_that_would_be_denied_are_left_out(options, names):
    assert {tool.name for tool in executor(**options).permitted()} == names
