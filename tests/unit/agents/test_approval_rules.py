"""Approval rules: which calls a pattern means, and what they decide."""

import pytest

from agents.api.agent_spec import AgentSpec
from agents.api.budget import Budget, BudgetMeter
from agents.api.errors import InvalidTask, PermissionDenied
from agents.runs.approval_rules import mode_of, parse_rule
from agents.runs.approvals import Approvals
from agents.runs.event_log import EventLog
from agents.runs.tool_executor import ToolExecutor
from agents.tools.shell import SHELL
from agents.tools.tool import Taint, ToolContext

MATCHES = [
    ("shell: pytest *", "pytest", True),
    ("shell: pytest *", "pytest -q tests", True),
    ("shell: pytest *", "pytest 'x; rm -rf /'", True),
    ("shell: pytest *", "pytest x; rm -rf /", False),
    ("shell: pytest *", "pytest2 x", False),
    ("shell: pytest *", "./pytest x", False),
    ("shell: pytest *", "env pytest", False),
    ("shell: pytest", "pytest -q", False),
    ("shell: git * --stat", "git log --stat", True),
    ("shell: git * --stat", "git --stat", False),
    ("shell: git * --stat", "git log -p --stat", False),
    ("shell: echo 'a b'", "echo a b", False),
    ("shell: echo 'a b'", "echo 'a b'", True),
    ("shell: pytest tests/*", "pytest tests/../../x", False),
    ("write: pytest *", "pytest", False),
    ("shell: *", "pytest x; rm -rf /", True),
]


@pytest.mark.parametrize(("rule", "command", "expected"), MATCHES)
def test_a_rule_means_calls_by_their_parsed_words(rule, command, expected):
    words = SHELL.words(SHELL.arguments(command=command))
    assert parse_rule(rule).matches("shell", words) is expected


@pytest.mark.parametrize("text", ["shell", "shell:", ": pytest", "", "shell: 'x"])
def test_a_rule_without_tool_or_pattern_is_refused(text):
    with pytest.raises(InvalidTask, match="approval rule"):
        parse_rule(text)


def test_the_strictest_rule_decides():
    rules = [parse_rule("shell: git *"), parse_rule("shell: git push *", "deny")]
    assert mode_of(rules, "shell", ("git", "log")) == "auto"
    assert mode_of(rules, "shell", ("git", "push", "origin")) == "deny"
    assert mode_of(rules, "shell", ("ls",)) is None


def executor(*rules, mode="ask", taint=(), sandbox="auto", has_approver=False):
    spec = AgentSpec("t", "audit", "", "", ("shell",), (), "Answer", permission_mode="auto")
    return ToolExecutor(
        spec=spec,
        tools={"shell": SHELL},
        context=ToolContext(root=__import__("pathlib").Path.cwd(), sandbox=sandbox),
        log=EventLog("run"),
        meter=BudgetMeter(Budget(), started=0.0),
        approvals=Approvals(has_approver=has_approver),
        mode=mode,
        taint=frozenset({Taint.TRUSTED, *taint}),
        rules=rules,
    )


PYTEST = parse_rule("shell: pytest *")
BOTH = (Taint.PRIVATE, Taint.UNTRUSTED)


@pytest.mark.parametrize(
    ("options", "command", "reason"),
    [
        ({}, "pytest -q", ""),
        ({}, "pytest -q; rm x", "the tool has side effects"),
        ({}, "ls", "the tool has side effects"),
        ({"mode": "auto"}, "ls", ""),
        ({"taint": BOTH}, "pytest -q", "the run has read untrusted and private data"),
        ({"sandbox": "off"}, "pytest -q", "the sandbox is off"),
        ({"sandbox": "off", "mode": "auto"}, "ls", "the sandbox is off"),
    ],
)
def test_a_rule_saves_the_question_where_nothing_forbids_it(options, command, reason):
    one = executor(PYTEST, **options)
    assert one.needs_approval(SHELL, SHELL.arguments(command=command)) == reason


def test_a_rule_does_not_loosen_a_denial():
    with pytest.raises(PermissionDenied):
        executor(PYTEST, mode="deny").needs_approval(SHELL, SHELL.arguments(command="pytest"))


def test_rules_can_ask_and_deny():
    ask, deny = parse_rule("shell: git push *", "ask"), parse_rule("shell: rm *", "deny")
    one = executor(ask, deny, mode="auto")
    push = SHELL.arguments(command="git push origin")
    assert one.needs_approval(SHELL, push) == "an approval rule asks for it"
    with pytest.raises(PermissionDenied, match="rule denies"):
        one.needs_approval(SHELL, SHELL.arguments(command="rm x"))


@pytest.mark.parametrize(
    ("options", "offered"),
    [
        ({}, True),
        ({"taint": BOTH}, False),
        ({"mode": "deny"}, False),
        ({"sandbox": "off"}, False),
        ({"sandbox": "off", "mode": "auto"}, False),
        ({"sandbox": "off", "has_approver": True}, True),
    ],
)
def test_a_tool_is_offered_if_a_rule_may_allow_a_call(options, offered):
    assert bool(executor(PYTEST, **options).permitted()) is offered


def test_without_a_rule_and_an_approver_it_is_not_offered():
    assert executor().permitted() == []


async def test_a_command_is_asked_for_with_the_words_that_are_executed():
    one = executor(has_approver=True)
    asked = []

    def answer():
        for request in one.approvals.pending:
            asked.append(request.target)
            one.approvals.decide(request.id, "deny")

    one.approvals.on_change(answer)
    with pytest.raises(PermissionDenied):
        await one.call("shell", {"command": "pytest x; rm -rf /"})
    assert asked == ["sh -c 'pytest x; rm -rf /'"]


async def test_always_covers_exactly_what_was_asked():
    one = executor(has_approver=True)
    answers = iter(["always", "deny"])
    one.approvals.on_change(
        lambda: [one.approvals.decide(r.id, next(answers)) for r in one.approvals.pending]
    )
    for command in ("true", "true"):  # the second is not asked
        await one.call("shell", {"command": command})
    with pytest.raises(PermissionDenied):
        await one.call("shell", {"command": "true; rm x"})
