"""Agents in a session: commands, progress, findings with their places, plans, diffs, cancelling."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from acp import resource_link_block, text_block
from acp.exceptions import RequestError

from agents.api.errors import AgentError, PermissionDenied
from agents.api.events import RunState
from agents.repair.permissions import Permissions
from agents.runs.event_log import EventLog
from agents.tools.tool import Effect
from app.acp.agent_turn import AgentTurn
from tests.acp.editor import open_editor

DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n import y\n-x = 1\n+x = 2\n"
BAD = "import subprocess\n\n\ndef run(name):\n    subprocess.call('ls ' + name, shell=True)\n"


async def test_the_agents_are_commands(tmp_path):
    async with open_editor(tmp_path) as editor:
        session = await editor.new()
        await editor.client.until(
            lambda: editor.client.of(session, "available_commands_update"), "the commands"
        )
        (told,) = editor.client.of(session, "available_commands_update")
        names = [one.name for one in told.available_commands]
        assert names[:3] == ["tools", "shorten", "repair"]
        assert {"security_audit", "coder", "code-review"} <= set(names)
        assert len(names) == len(set(names)) > 60
        assert all(one.description and one.input.root.hint for one in told.available_commands)


@pytest.mark.parametrize("sign", ["/", "@"])
async def test_an_agent_audits_the_folder_of_the_session(tmp_path, sign):
    async with open_editor(tmp_path) as editor:
        (editor.folder / "bad.py").write_text(BAD)
        session = await editor.new()
        answer = await editor.prompt(session, f"{sign}security_audit")
        assert answer.stop_reason == "end_turn"
        text = editor.client.text(session)
        assert "security_audit" in text
        assert "bad.py:5" in text
        run = editor.client.of(session, "tool_call")[0]
        assert run.title == "@security_audit"
        updates = editor.client.of(session, "tool_call_update")
        places = [one.locations for one in updates if one.locations]
        assert (places[-1][0].path, places[-1][0].line) == (str(editor.folder / "bad.py"), 5)
        ends = [one.status for one in updates if one.tool_call_id == run.tool_call_id]
        assert ends[-1] == "completed"


async def test_an_agents_answer_is_part_of_the_conversation(tmp_path):
    async with open_editor(tmp_path, "It is bad.") as editor:
        (editor.folder / "bad.py").write_text(BAD)
        session = await editor.new()
        await editor.prompt(session, "@security_audit bad.py")
        await editor.prompt(session, "Is that bad?")
        assert "bad.py:5" in editor.prompt_text()
    async with open_editor(tmp_path) as editor:
        await editor.agent.load_session(cwd=str(editor.folder), session_id=session, mcp_servers=[])
        said = editor.client.text(session, "user_message_chunk")
        assert said.startswith("@security_audit bad.py")
        assert "bad.py:5" in editor.client.text(session)


@pytest.mark.parametrize(("answer", "allowed"), [("once", True), ("deny", False)])
async def test_a_repair_asks_with_its_diff_before_it_writes(tmp_path, monkeypatch, answer, allowed):
    async def repair(self, path, *, options, on_start, **rest):
        log = EventLog("run-repair")
        on_start(SimpleNamespace(id=log.run, log=log))
        permissions = Permissions(self.approvals, log, log.run, options.mode, str(path))
        asked = {"arguments": "pytest", "reason": "it runs code", "node": "tests"}
        await permissions.ask("run_tests", Effect.EXECUTE, target="pytest", **asked)
        applied = True
        try:
            asked = {"arguments": DIFF, "reason": "it changes files", "node": "apply", "diff": DIFF}
            await permissions.ask("apply_repair", Effect.WRITE, target="1 files", **asked)
        except PermissionDenied:
            applied = False
        return SimpleNamespace(fields=lambda: {"state": "ok", "output": {"applied": applied}})

    monkeypatch.setattr("agents.cluster.Cluster.repair", repair)
    async with open_editor(tmp_path) as editor:
        path = editor.folder / "a.py"
        path.write_text("import y\nx = 1\n")
        editor.client.answers = ["once", answer]
        session = await editor.new()
        await editor.prompt(session, "/repair")
        (_, tests, _), (_, apply, _) = editor.client.asked
        assert tests.title == "run_tests pytest"
        diff = apply.content[0]
        assert (diff.path, diff.new_text) == (str(path), "import y\nx = 2\n")
        assert ("**applied**" in editor.client.text(session)) is allowed
        status, _ = editor.client.states(session)["apply_repair 1 files"]
        assert status == ("completed" if allowed else "failed")


async def test_a_pipeline_is_a_plan(tmp_path):
    async with open_editor(tmp_path) as editor:
        (editor.folder / "bad.py").write_text(BAD)
        editor.client.answers = ["deny"] * 20
        session = await editor.new()
        await editor.prompt(session, "/code-review bad.py")
        plans = editor.client.of(session, "plan")
        assert {one.status for one in plans[0].entries} <= {"pending", "in_progress"}
        assert {one.status for one in plans[-1].entries} == {"completed"}
        assert len(plans[-1].entries) > 2


async def test_a_file_that_is_linked_is_what_an_agent_works_on(tmp_path):
    async with open_editor(tmp_path) as editor:
        path = editor.folder / "notes.txt"
        path.write_text("Tomorrow at noon we meet in Paris. It rains. The train leaves at ten.")
        session = await editor.new()
        link = resource_link_block("notes.txt", path.as_uri())
        await editor.prompt(session, [text_block("/summarizer "), link])
        assert "Paris" in editor.client.text(session)


async def test_a_cancelled_run_stops(tmp_path, monkeypatch):
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def run(self, key, paths=(), *, cancelled, on_start, **options):
        log = EventLog("run-held")
        on_start(SimpleNamespace(id=log.run, log=log))
        await cancelled.wait()
        loop.call_soon_threadsafe(stopped.set)
        return SimpleNamespace(fields=lambda: {"state": RunState.CANCELLED.value})

    monkeypatch.setattr("agents.cluster.Cluster.run", run)
    async with open_editor(tmp_path, "Fine.") as editor:
        session = await editor.new()
        running = asyncio.create_task(editor.prompt(session, "/critic : look"))
        await editor.client.until(lambda: editor.client.of(session, "tool_call"), "the run")
        await editor.agent.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"
        assert stopped.is_set()
        assert (await editor.prompt(session, "Hello?")).stop_reason == "end_turn"


async def test_a_run_that_nobody_follows_any_more_is_stopped():
    stopped = []
    service = SimpleNamespace(result=lambda run: None, events=lambda *_: (), cancel=stopped.append)
    told, asking = SimpleNamespace(tell=lambda _: None), SimpleNamespace(look=lambda: None)
    following = asyncio.Event()

    async def woken():
        following.set()
        await asyncio.Event().wait()

    turn = AgentTurn(
        service, told, asking, woken=woken, cancelled=lambda: False, folder=Path("/project")
    )
    task = asyncio.create_task(turn.follow("run-1", "critic", []))
    await following.wait()
    task.cancel()  # the client has left
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped == ["run-1"]


async def test_a_run_that_is_lost_is_not_waited_for_in_its_conversation(tmp_path, monkeypatch):
    async def follow(self, run, name, paths):
        raise AgentError("The server does not answer.")

    monkeypatch.setattr("app.acp.session.AgentTurn.follow", follow)
    async with open_editor(tmp_path, "Fine.") as editor:
        session = await editor.new()
        with pytest.raises(RequestError, match="does not answer"):
            await editor.prompt(session, "/critic : look")
        await editor.prompt(session, "Hello?")
        assert "The run was lost" in editor.prompt_text()


async def test_a_run_that_cannot_start_is_an_error_and_leaves_no_message(tmp_path):
    async with open_editor(tmp_path, "Fine.") as editor:
        session = await editor.new()
        with pytest.raises(RequestError, match="repair"):
            await editor.prompt(session, "/repair . .")
        await editor.prompt(session, "Hello?")
        assert "/repair" not in editor.prompt_text()


def patching(diff):
    """A cluster whose agents return a diff."""

    async def run(self, key, paths=(), *, on_start, **options):
        log = EventLog("run-patch")
        on_start(SimpleNamespace(id=log.run, log=log))
        return SimpleNamespace(fields=lambda: {"state": "ok", "output": {"diff": diff}})

    return run


@pytest.mark.parametrize(
    ("mode", "answer", "asked", "written"),
    [
        ("ask", "once", 1, True),
        ("ask", "deny", 1, False),
        ("auto", "once", 0, True),
        ("deny", "once", 0, False),
    ],
)
async def test_a_patch_is_shown_and_written_if_it_is_allowed(
    tmp_path, monkeypatch, mode, answer, asked, written
):
    monkeypatch.setattr("agents.cluster.Cluster.run", patching(DIFF))
    async with open_editor(tmp_path) as editor:
        path = editor.folder / "a.py"
        path.write_text("import y\nx = 1\n")
        editor.client.answers = [answer]
        session = await editor.new()
        await editor.agent.set_session_mode(session_id=session, mode_id=mode)
        await editor.prompt(session, "/coder : set x to 2")
        assert len(editor.client.asked) == asked
        if asked:
            _, call, options = editor.client.asked[0]
            (diff,) = call.content
            assert (diff.path, diff.new_text) == (str(path), "import y\nx = 2\n")
            assert [one.kind for one in options] == ["allow_once", "reject_once"]
        assert path.read_text() == ("import y\nx = 2\n" if written else "import y\nx = 1\n")


@pytest.mark.parametrize(
    "diff", ["no diff", DIFF.replace("x = 1", "z = 1"), DIFF.replace("a.py", "../a.py")]
)
async def test_a_patch_that_does_not_fit_is_text_alone(tmp_path, monkeypatch, diff):
    monkeypatch.setattr("agents.cluster.Cluster.run", patching(diff))
    async with open_editor(tmp_path) as editor:
        (editor.folder / "a.py").write_text("import y\nx = 1\n")
        session = await editor.new()
        await editor.prompt(session, "/coder : set x to 2")
        assert not editor.client.asked
        assert "```diff" in editor.client.text(session)


async def test_a_plan_of_the_planner_is_the_plan(tmp_path, monkeypatch):
    async def run(self, key, paths=(), *, on_start, **options):
        log = EventLog("run-plan")
        on_start(SimpleNamespace(id=log.run, log=log))
        steps = [
            {"id": "s1", "agent": "coder", "input": "write it"},
            {"id": "s2", "agent": "judge"},
        ]
        return SimpleNamespace(fields=lambda: {"state": "ok", "output": {"steps": steps}})

    monkeypatch.setattr("agents.cluster.Cluster.run", run)
    async with open_editor(tmp_path) as editor:
        session = await editor.new()
        await editor.prompt(session, "/planner : build it")
        (plan,) = editor.client.of(session, "plan")
        assert [one.content for one in plan.entries] == ["coder: write it", "judge"]


async def test_tools_are_shown_and_chosen(tmp_path):
    async with open_editor(tmp_path, "Fine.") as editor:
        session = await editor.new()
        await editor.prompt(session, "/tools")
        assert "read, grep" in editor.client.text(session)
        await editor.prompt(session, "/tools grep")
        assert editor.client.text(session).endswith("may call grep (mode ask).")
        await editor.prompt(session, "/tools off")
        assert editor.client.text(session).endswith("may call no tools (mode ask).")
        with pytest.raises(RequestError, match="no tool 'nothing'"):
            await editor.prompt(session, "/tools nothing")
        await editor.prompt(session, "/tools on")
        assert "read, grep, glob, edit, write, shell" in editor.client.text(session)
