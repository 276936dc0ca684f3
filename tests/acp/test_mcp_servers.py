"""The MCP servers that an editor names for a session."""

import sys
from pathlib import Path

import pytest
from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, SseMcpServer

from app.acp.mcp_servers import further_servers
from tests.acp.editor import call, open_editor

SCRIPT = Path(__file__).parents[1] / "fakes" / "mcp_server.py"


def fake(tmp_path, name="Fake Server"):
    tools = EnvVariable(name="MCP_TOOLS", value=str(tmp_path / "tools.json"))
    arguments = ["-S", "-E", str(SCRIPT)]
    return McpServerStdio(name=name, command=sys.executable, args=arguments, env=[tools])


async def test_a_server_is_asked_about_and_its_tools_are_called(tmp_path):
    calls = call("fake-server.echo", text="hi")
    async with open_editor(tmp_path, calls, "It said hi.", tools=()) as editor:
        made = await editor.agent.new_session(cwd=str(editor.folder), mcp_servers=[fake(tmp_path)])
        await editor.prompt(made.session_id, "Say hi.")
        titles = [one.title for _, one, _ in editor.client.asked]
        assert titles[0].startswith("mcp fake-server start")
        assert titles[1].startswith("mcp fake-server tools")
        assert titles[2].startswith("fake-server.echo")
        assert "mcp_server.py" in editor.client.asked[0][1].content[0].content.text
        status, content = editor.client.states(made.session_id)["fake-server.echo"]
        assert status == "completed"
        assert "hi" in content[0].content.text


async def test_a_server_that_is_not_allowed_is_not_started(tmp_path):
    async with open_editor(tmp_path, "No tools.", tools=("read",)) as editor:
        editor.client.answers = ["deny"] * 3
        made = await editor.agent.new_session(cwd=str(editor.folder), mcp_servers=[fake(tmp_path)])
        answer = await editor.prompt(made.session_id, "Say hi.")
        assert answer.stop_reason == "end_turn"
        assert len(editor.client.asked) == 1
        assert "was denied" in editor.client.text(made.session_id, "agent_thought_chunk")
        states = editor.client.states(made.session_id)
        assert [status for status, _ in states.values()] == ["failed"]


async def test_what_cannot_be_used_is_said_before_the_answer(tmp_path):
    async with open_editor(tmp_path, "Fine.", tools=()) as editor:
        sse = SseMcpServer(type="sse", name="old", url="https://example.org/sse", headers=[])
        made = await editor.agent.new_session(cwd=str(editor.folder), mcp_servers=[sse])
        await editor.prompt(made.session_id, "Hello?")
        assert "'old' was left out" in editor.client.text(made.session_id, "agent_thought_chunk")


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (HttpMcpServer(type="http", name="a", url="http://example.org", headers=[]), "https"),
        (HttpMcpServer(type="http", name="a", url="nonsense", headers=[]), "URL"),
        (McpServerStdio(name="1 2", command="x", args=[], env=[]), "no letters"),
        (
            McpServerStdio(
                name="a", command="x", args=[], env=[EnvVariable(name="K", value="${HOME}")]
            ),
            "stands for one of yours",
        ),
    ],
)
def test_each_problem_is_a_sentence(server, problem):
    servers, problems = further_servers([server])
    assert servers == ()
    assert problem in problems[0]


def test_names_become_ours_and_are_unique():
    headers = [HttpHeader(name="Authorization", value="Bearer x")]
    http = HttpMcpServer(
        type="http", name="My Issues!", url="https://example.org/m", headers=headers
    )
    (server, *_), problems = further_servers([http, http])
    assert (server.name, server.url) == ("my-issues", "https://example.org/m")
    assert dict(server.headers) == {"Authorization": "Bearer x"}
    assert len(problems) == 1
