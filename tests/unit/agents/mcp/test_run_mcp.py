"""MCP tools in a run: what is asked, what is callable, and what becomes of the servers."""

import asyncio
import json

import pytest

from agents.api.budget import Budget
from agents.api.errors import InvalidSpec, PermissionDenied
from agents.api.events import RunState
from agents.cluster import Cluster
from agents.mcp.servers import McpServers
from agents.outputs.answer import Answer
from agents.plugins.registry import Registry
from agents.roster.lint import check_spec
from agents.roster.roster import Roster
from agents.runs.approvals import Approvals
from agents.tools.tool import Effect, Taint
from tests.unit.agents.conftest import spec
from tests.unit.agents.mcp.conftest import running


async def call_tools(task, context):
    """Make the calls of the task, and answer with what each returned."""
    lines = []
    for name, arguments in json.loads(task.text):
        try:
            output = await context.tool(name, **arguments)
        except PermissionDenied as error:
            output = {"text": str(error), "failed": True}
        lines.append(f"{name} {'failed' if output['failed'] else 'ok'}: {output['text']}")
    return Answer(text="\n".join([*lines, f"tools: {' '.join(context.available_tools)}"])[:4000])


class Person:
    """Answers approvals by the name of the tool; remembers what was asked."""

    def __init__(self, **decisions):
        self.approvals = Approvals()
        self.asked = []
        self._decisions = decisions
        self.approvals.on_change(self._answer)

    def _answer(self):
        for request in self.approvals.pending:
            if request.id not in {one.id for one in self.asked}:
                self.asked.append(request)
                last = request.tool.rpartition(" ")[2]
                decision = self._decisions.get(last, "once")
                asyncio.get_running_loop().call_soon(self.approvals.decide, request.id, decision)

    @property
    def tools(self):
        return [one.tool for one in self.asked]


@pytest.fixture
def approvals_file(tmp_path):
    return tmp_path / "approved" / "mcp.json"


@pytest.fixture
def run(make_server, approvals_file):
    """Run the agent with some calls; the person answers."""

    async def start(calls, person=None, *, servers=None, mode="ask", **fields):
        servers = [make_server()] if servers is None else servers
        registry = Registry(
            outputs={"Answer": Answer},
            procedures={"caller": call_tools},
            mcp=McpServers(servers, approvals_file),
        )
        agent = spec("caller", mcp_servers=tuple(one.name for one in servers), **fields)
        approvals = Approvals(has_approver=False) if person is None else person.approvals
        cluster = Cluster(
            registry=registry, roster=Roster({"caller": agent}), approvals=approvals, mode=mode
        )
        return await cluster.run("caller", task=json.dumps(calls))

    return start


ECHO = [["fake.echo", {"text": "hello"}]]


async def test_start_tools_and_each_call_are_asked_once(run, pids):
    person = Person()
    result = await run(ECHO, person)
    assert result.state is RunState.OK
    assert "fake.echo ok: hello" in result.output.text
    assert person.tools == ["mcp fake start", "mcp fake tools", "fake.echo"]
    start, tools, call = person.asked
    assert "mcp_server.py" in start.arguments
    offered = json.loads(tools.arguments)["tools"]
    assert "new tool echo" in offered
    assert '"readOnlyHint": true' in offered
    assert call.effects == {Effect.EXECUTE, Effect.EGRESS}
    assert call.target == '{"text":"hello"}'
    assert running(pids) == []
    again = Person()
    await run(ECHO, again)
    assert again.tools == ["fake.echo"]


async def test_what_servers_say_about_their_tools_labels_the_run(run):
    assert Taint.UNTRUSTED in (await run([], Person())).taint
    assert Taint.UNTRUSTED not in (await run([], servers=[])).taint


async def test_without_an_approver_a_new_server_is_not_started(run, pids):
    result = await run(ECHO, mode="auto")
    assert "fake.echo" not in result.output.text.rpartition("tools:")[2]
    assert "may not call" in result.output.text
    assert "`pravaha mcp approve fake`" in result.notes[0]
    assert not pids.exists()


@pytest.mark.parametrize(
    ("denied", "note"), [("start", "mcp fake start was denied"), ("tools", "are missing")]
)
async def test_what_is_denied_is_not_used_and_asked_again(run, pids, denied, note):
    result = await run(ECHO, Person(**{denied: "deny"}))
    assert result.state is RunState.OK
    assert "may not call" in result.output.text
    assert note in " ".join(result.notes)
    assert pids.exists() == (denied == "tools")
    again = Person()
    await run(ECHO, again)
    assert f"mcp fake {denied}" in again.tools


async def test_a_changed_tool_is_asked_again_as_a_diff(run, redefine):
    await run(ECHO, Person())
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "to": {"type": "string"}},
    }
    redefine({"name": "echo", "description": "Return the\u200b text.", "inputSchema": schema})
    denier = Person(tools="deny")
    result = await run([*ECHO, ["fake.fail", {}]], denier)
    assert denier.tools == ["mcp fake tools", "fake.fail"]
    detail = json.loads(denier.asked[0].arguments)["tools"]
    assert "changed tool echo" in detail
    assert '-  "description": "Return the text."' in detail
    assert '+  "description": "Return the⟨U+200B⟩ text."' in detail
    assert "new tool" not in detail
    assert "fake.echo failed" in result.output.text  # changed and not approved: not callable
    assert "fake.fail failed: it failed" in result.output.text  # unchanged: callable
    person = Person()
    assert "fake.echo ok" in (await run(ECHO, person)).output.text
    assert person.tools == ["mcp fake tools", "fake.echo"]


async def test_a_tool_that_changes_within_a_run_is_not_called(run, redefine, make_server):
    await run(ECHO, Person())

    class Changer(Person):
        def _answer(self):
            if any(one.tool == "fake.change" for one in self.approvals.pending):
                redefine(
                    {
                        "name": "echo",
                        "description": "Now it is evil.",
                        "inputSchema": {"type": "object"},
                    }
                )
            super()._answer()

    result = await run([["fake.change", {}], *ECHO, ["fake.structured", {}]], Changer())
    assert "fake.change ok" in result.output.text
    assert (
        "fake.echo failed: The tool echo of the MCP server fake is not the one"
        in result.output.text
    )
    assert 'fake.structured ok: {"a":[1,2]}' in result.output.text


async def test_another_program_under_the_same_name_is_asked_again(run, make_server):
    await run(ECHO, Person())
    person = Person()
    await run(ECHO, person, servers=[make_server("noise")])
    assert person.tools[:2] == ["mcp fake start", "mcp fake tools"]
    assert person.asked[0].reason == "another configuration of this MCP server was approved before"


async def test_a_crash_fails_its_call_and_not_the_run(run, pids):
    await run(ECHO, Person())
    result = await run([["fake.crash", {}], *ECHO], Person())
    assert result.state is RunState.OK
    assert "fake.crash failed: The MCP server fake has stopped" in result.output.text
    assert "fake.echo ok: hello" in result.output.text  # started anew
    assert len(pids.read_text().split()) == 3
    assert running(pids) == []


async def test_arguments_are_checked_before_anybody_is_asked(run):
    await run(ECHO, Person())
    person = Person()
    result = await run([["fake.echo", {"text": 5}]], person)
    assert result.state is RunState.FAILED
    assert result.error == "fake.echo: arguments: Value error, text: 5 is not of type 'string'."
    assert person.tools == []


async def test_disallowed_tools_and_the_mode_deny(run):
    await run(ECHO, Person())
    result = await run(ECHO, Person(), disallowed_tools=("fake.echo",))
    assert "may not call" in result.output.text
    assert "fake.fail" in result.output.text
    result = await run(ECHO, Person(), permission_mode="deny")
    assert "the permission mode is deny" in result.notes[0]


async def test_the_end_of_the_budget_leaves_no_process(run, pids, make_server):
    await run(ECHO, Person())
    result = await run([["fake.slow", {}]], Person(), budget=Budget(seconds=0.5))
    assert result.state is RunState.EXHAUSTED
    assert running(pids) == []


async def test_servers_of_one_run_are_apart(run, make_server):
    person = Person()
    servers = [make_server(), make_server(name="other")]
    calls = [*ECHO, ["other.echo", {"text": "there"}]]
    text = (await run(calls, person, servers=servers)).output.text
    assert "fake.echo ok: hello\nother.echo ok: there" in text
    text = (
        await run(calls, Person(), servers=[make_server("exit"), make_server(name="other")])
    ).output.text
    assert "other.echo ok: there" in text


def test_an_agent_may_name_configured_servers_only(make_server, tmp_path):
    registry = Registry(
        outputs={"Answer": Answer}, mcp=McpServers([make_server()], tmp_path / "a.json")
    )
    check_spec(spec("caller", mcp_servers=("fake",)), registry)
    with pytest.raises(InvalidSpec, match="there is no MCP server other"):
        check_spec(spec("caller", mcp_servers=("other",)), registry)
