"""The tool `memory`: scopes of the calling agent, taint, and the approval of forgetting."""

import pytest
from pydantic import ValidationError

from agents.memory.entry import USER
from agents.memory.store import MemoryStore
from agents.memory.tool import MemoryArguments, memory_tool
from agents.plugins.registry import load_registry
from agents.tools.tool import Taint, ToolContext

UNTRUSTED = frozenset({Taint.UNTRUSTED})


@pytest.fixture
def database(tmp_path):
    return tmp_path / "data" / "memory.db"


@pytest.fixture
def tool(database):
    return memory_tool()


@pytest.fixture
def call(tool, database, tmp_path):
    async def act(agent="planner", folder="one", taint=frozenset({Taint.TRUSTED}), **arguments):
        root = tmp_path / folder
        root.mkdir(exist_ok=True)
        context = ToolContext(root=root, agent=agent, taint=taint, memory=database)
        return await tool.call(MemoryArguments(**arguments), context)

    return act


async def test_a_stored_fact_is_recalled(call):
    stored = await call(action="store", path="build/command", text="run make test")
    assert stored.text == "Stored: build/command, version 1."
    recalled = await call(action="recall", query="how to build")
    assert '"run make test"' in recalled.text
    assert recalled.choices["id"] == (stored.data["entry"]["id"],)


async def test_projects_and_agents_are_kept_apart(call):
    await call(action="store", path="a", text="amber one")
    await call(action="store", path="b", text="amber two", scope="agent")
    assert len((await call(action="recall", query="amber")).data["entries"]) == 2
    assert (await call(action="recall", query="amber", agent="coder", folder="two")).data[
        "entries"
    ] == []


async def test_what_came_from_the_web_stays_untrusted(call):
    await call(action="store", path="a", text="amber", taint=UNTRUSTED)
    await call(action="store", path="b", text="cedar")
    assert Taint.UNTRUSTED in (await call(action="recall", query="amber")).taint
    assert Taint.UNTRUSTED not in (await call(action="recall", query="cedar")).taint
    assert Taint.UNTRUSTED in (await call(action="list")).taint


async def test_forgetting_needs_an_approval_and_reaches_own_scopes_only(call, tool, database):
    own = (await call(action="store", path="a", text="amber")).data["entry"]["id"]
    assert tool.needs_approval(MemoryArguments(action="forget", id=own))
    assert not tool.needs_approval(MemoryArguments(action="recall", query="x"))
    assert (await call(action="forget", id=own, folder="two")).failed
    assert (await call(action="forget", id=own)).data == {"forgotten": 1}
    with MemoryStore(database) as store:
        assert store.entries([USER]) == store.entries() == []


async def test_secrets_are_removed_and_that_is_said(call):
    stored = await call(action="store", path="db", text="postgres://u:s3cr3tpw@db/x")
    assert "Removed before storing: secret." in stored.text


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": "recall"},
        {"action": "store", "text": "x"},
        {"action": "forget"},
        {"action": "forget", "id": "xyz"},
    ],
)
def test_incomplete_arguments_are_refused(arguments):
    with pytest.raises(ValidationError):
        MemoryArguments(**arguments)


def test_it_is_registered():
    assert load_registry(enabled=()).tool("memory").name == "memory"
