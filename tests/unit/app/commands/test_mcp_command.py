"""`pravaha mcp`, over a real server and a configuration of its own."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import cli

SCRIPT = Path(__file__).parents[3] / "fakes" / "mcp_server.py"


@pytest.fixture
def configure(tmp_path, monkeypatch):
    monkeypatch.setenv("PRAVAHA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()

    def write(*flags, name="fake"):
        arguments = json.dumps(["-S", "-E", str(SCRIPT), *flags])
        table = (
            f"[mcp.servers.{name}]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n"
        )
        table += f"env = {{ MCP_TOOLS = {json.dumps(str(tmp_path / 'tools.json'))} }}\n"
        (tmp_path / "config" / "pravaha.toml").write_text(table)

    write()
    return write


@pytest.fixture
def mcp(configure):
    return lambda *arguments: CliRunner().invoke(cli, ["mcp", *arguments])


def test_a_server_is_approved_step_by_step(mcp, tmp_path):
    assert "not approved: `pravaha mcp approve fake`" in mcp("list").stdout
    refused = mcp("approve", "fake")
    assert refused.exit_code == 1
    assert "mcp_server.py" in refused.stdout
    assert "nobody to ask" in refused.stderr
    done = mcp("approve", "fake", "--yes")
    assert done.exit_code == 0
    assert "new tool echo" in done.stdout
    assert "10 tools are approved" in done.stdout
    (row,) = json.loads(mcp("list", "--json").stdout)["servers"]
    assert row["approved"]
    assert "echo" in row["tools"]
    assert mcp("doctor").stdout == "fake: ok\n"
    assert "all 10 tools are approved as they are" in mcp("approve", "fake").stdout
    changed = {"name": "echo", "description": "Return it.", "inputSchema": {"type": "object"}}
    (tmp_path / "tools.json").write_text(json.dumps([changed]))
    doctor = mcp("doctor")
    assert doctor.exit_code == 1
    assert "1 tools have changed: `pravaha mcp approve fake`" in doctor.stdout
    again = mcp("approve", "fake")
    assert '+  "description": "Return it."' in again.stdout
    assert again.exit_code == 1
    assert mcp("approve", "fake", "--yes").exit_code == 0
    assert mcp("doctor").exit_code == 0
    assert mcp("forget", "fake").exit_code == 0
    assert mcp("forget", "fake").exit_code == 1
    assert "not approved" in mcp("doctor").stdout


def test_a_server_that_does_not_work_is_said(mcp, configure):
    configure("exit")
    failed = mcp("approve", "fake", "--yes")
    assert failed.exit_code == 1
    assert "it ended with status 7; configuration missing" in failed.stderr
    assert "configuration missing" in mcp("doctor").stdout
    unknown = mcp("approve", "fak")
    assert "did you mean fake?" in unknown.stderr


def test_an_agent_with_a_server_is_linted_and_shown(mcp, tmp_path):
    agents = tmp_path / "config" / "agents"
    agents.mkdir()
    (agents / "helper.md").write_text(
        "---\nname: helper\ndescription: Helps.\ncategory: execution\ntools: [read, http_fetch]\n"
        "mcpServers: [fake]\noutput_schema: Answer\n---\nYou help.\n"
    )
    agents_command = lambda *arguments: CliRunner().invoke(cli, ["agents", *arguments])  # noqa: E731
    assert agents_command("lint", str(agents / "helper.md")).exit_code == 0
    shown = agents_command("show", "helper").stdout
    assert "http_fetch (off)" in shown
    assert "fake" in shown
    assert json.loads(agents_command("show", "helper", "--json").stdout)["mcp_servers"] == ["fake"]


def test_http_domains_is_for_agents_only(mcp):
    refused = CliRunner().invoke(cli, ["--http-domains", "a.org", "run", "x"])
    assert refused.exit_code == 2
    assert "no meaning for the command run" in refused.stderr
    refused = CliRunner().invoke(cli, ["--attach", "http://127.0.0.1:9", "--http-domains", "a.org"])
    assert "cannot be set" in refused.stderr
