"""Calls of tools: asked, allowed, denied, shown with their places and diffs, and with unsaved texts."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from acp.exceptions import RequestError

from tests.acp.editor import call, open_editor

READ = call("read", path="a.py")
EDIT = call("edit", path="a.py", old="x = 1", new="x = 2")


async def test_a_call_that_reads_is_shown_and_not_asked(tmp_path):
    async with open_editor(tmp_path, f"I look. {READ}", "It sets x.") as editor:
        (editor.folder / "a.py").write_text("x = 1\n")
        session = await editor.new()
        assert (await editor.prompt(session, "What is in a.py?")).stop_reason == "end_turn"
        assert "I look." in editor.client.text(session)
        assert "It sets x." in editor.client.text(session)
        assert "<tool_call>" not in editor.client.text(session)
        (made,) = editor.client.of(session, "tool_call")
        assert (made.title, made.kind) == ("read a.py", "read")
        assert made.raw_input == {"path": "a.py"}
        assert made.locations[0].path == str(editor.folder / "a.py")
        status, content = editor.client.states(session)["read a.py"]
        assert status == "completed"
        assert "x = 1" in content[0].content.text
        assert not editor.client.asked


async def test_an_edit_is_asked_with_its_diff_and_then_made(tmp_path):
    async with open_editor(tmp_path, READ, EDIT, "Done.") as editor:
        path = editor.folder / "a.py"
        path.write_text("import y\nx = 1\n")
        session = await editor.new()
        await editor.prompt(session, "Set x to 2.")
        ((asked_in, asked, options),) = editor.client.asked
        assert asked_in == session
        assert [one.kind for one in options] == ["allow_once", "allow_always", "reject_once"]
        diff = asked.content[0]
        assert (diff.type, diff.path) == ("diff", str(path))
        assert (diff.old_text, diff.new_text) == ("import y\nx = 1\n", "import y\nx = 2\n")
        shown = [one.tool_call_id for one in editor.client.of(session, "tool_call")]
        assert asked.tool_call_id in shown
        status, content = editor.client.states(session)["edit a.py"]
        assert status == "completed"
        assert content[0].new_text == "import y\nx = 2\n"
        assert path.read_text() == "import y\nx = 2\n"


@pytest.mark.parametrize("answer", ["deny", "cancelled", "nonsense", RequestError(-32603, "crash")])
async def test_what_is_not_allowed_is_not_done(tmp_path, answer):
    async with open_editor(tmp_path, READ, EDIT, "I could not.") as editor:
        path = editor.folder / "a.py"
        path.write_text("x = 1\n")
        editor.client.answers = [answer]
        session = await editor.new()
        assert (await editor.prompt(session, "Set x to 2.")).stop_reason == "end_turn"
        assert path.read_text() == "x = 1\n"
        status, content = editor.client.states(session)["edit a.py"]
        assert status == "failed"
        assert "denied" in content[-1].content.text
        assert editor.client.text(session).endswith("I could not.")


async def test_always_holds_for_the_conversation(tmp_path):
    press = call("shell", command="echo hi")
    async with open_editor(tmp_path, press, "Done.", press, "Again.") as editor:
        editor.client.answers = ["always", "deny"]
        session = await editor.new()
        await editor.prompt(session, "Say hi.")
        await editor.prompt(session, "Say hi again.")
        assert len(editor.client.asked) == 1
        calls = editor.client.of(session, "tool_call")
        assert [(one.title, one.kind) for one in calls] == [("shell echo hi", "execute")] * 2


async def test_in_the_mode_auto_nothing_is_asked(tmp_path):
    async with open_editor(tmp_path, READ, EDIT, "Done.") as editor:
        path = editor.folder / "a.py"
        path.write_text("x = 1\n")
        session = await editor.new()
        await editor.agent.set_session_mode(session_id=session, mode_id="auto")
        await editor.prompt(session, "Set x to 2.")
        assert path.read_text() == "x = 2\n"
        assert not editor.client.asked


async def test_in_the_mode_deny_only_tools_that_read_are_offered(tmp_path):
    async with open_editor(tmp_path, EDIT, "I cannot.") as editor:
        path = editor.folder / "a.py"
        path.write_text("x = 1\n")
        session = await editor.new()
        await editor.agent.set_session_mode(session_id=session, mode_id="deny")
        await editor.prompt(session, "Set x to 2.")
        assert path.read_text() == "x = 1\n"
        assert not editor.client.asked
        assert "shell" not in editor.prompt_text(0)


async def test_unsaved_text_of_the_editor_is_read_and_changed(tmp_path):
    async with open_editor(tmp_path, READ, EDIT, "Done.", reads=True, writes=True) as editor:
        path = editor.folder / "a.py"
        path.write_text("saved\n")
        editor.client.buffers[str(path)] = "x = 1  # unsaved\n"
        session = await editor.new()
        await editor.prompt(session, "Set x to 2.")
        _, content = editor.client.states(session)["read a.py"]
        assert "unsaved" in content[0].content.text
        diff = editor.client.asked[0][1].content[0]
        assert diff.old_text == "x = 1  # unsaved\n"
        assert editor.client.written == {str(path): "x = 2  # unsaved\n"}


async def test_a_file_that_the_editor_does_not_have_is_read_from_the_disk(tmp_path):
    async with open_editor(tmp_path, READ, "Done.", reads=True) as editor:
        (editor.folder / "a.py").write_text("x = 1\n")
        session = await editor.new()
        await editor.prompt(session, "Look.")
        status, content = editor.client.states(session)["read a.py"]
        assert (status, "x = 1" in content[0].content.text) == ("completed", True)


async def test_a_file_that_was_never_saved_is_read_from_the_editor(tmp_path):
    async with open_editor(tmp_path, READ, "Done.", reads=True) as editor:
        editor.client.buffers[str(editor.folder / "a.py")] = "new text\n"
        session = await editor.new()
        await editor.prompt(session, "Look.")
        assert "new text" in editor.client.states(session)["read a.py"][1][0].content.text


async def test_a_link_out_of_the_folder_is_neither_read_nor_written(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x = 1\n")
    write = call("write", path="a.py", content="mine")
    async with open_editor(tmp_path, READ, write, "No.", reads=True, writes=True) as editor:
        (editor.folder / "a.py").symlink_to(secret)
        editor.client.buffers[str(editor.folder / "a.py")] = "through the editor"
        session = await editor.new()
        await editor.prompt(session, "Look.")
        states = editor.client.states(session)
        assert [status for status, _ in states.values()] == ["failed", "failed"]
        assert secret.read_text() == "x = 1\n"
        assert not editor.client.written


async def test_an_unsaved_file_behind_a_linked_folder_is_not_read(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    read = call("read", path="linked/notes.txt")
    async with open_editor(tmp_path, read, "No.", reads=True) as editor:
        (editor.folder / "linked").symlink_to(tmp_path / "elsewhere")
        editor.client.buffers[str(editor.folder / "linked" / "notes.txt")] = "through the editor"
        session = await editor.new()
        await editor.prompt(session, "Look.")
        ((status, content),) = editor.client.states(session).values()
        assert status == "failed"
        assert "through the editor" not in content[-1].content.text


async def test_a_text_of_the_editor_has_the_size_of_a_file_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr("app.acp.editor_files.MAX_FILE_BYTES", 1000)
    async with open_editor(tmp_path, READ, "No.", reads=True) as editor:
        (editor.folder / "a.py").write_text("x = 1\n")
        editor.client.buffers[str(editor.folder / "a.py")] = "x" * 1001
        session = await editor.new()
        await editor.prompt(session, "Look.")
        status, content = editor.client.states(session)["read a.py"]
        assert status == "failed"
        assert "larger than" in content[-1].content.text


async def test_a_new_file_is_a_diff_without_a_text_before(tmp_path):
    write = call("write", path="sub/new.py", content="y = 1\n")
    async with open_editor(tmp_path, write, "Done.") as editor:
        session = await editor.new()
        await editor.prompt(session, "Write it.")
        diff = editor.client.asked[0][1].content[0]
        assert (diff.old_text, diff.new_text) == (None, "y = 1\n")
        assert (editor.folder / "sub/new.py").read_text() == "y = 1\n"


async def test_a_todo_list_is_the_plan(tmp_path):
    items = [
        {"text": "read", "state": "done"},
        {"text": "write", "state": "doing"},
        {"text": "test"},
    ]
    async with open_editor(tmp_path, call("todo", items=items), "Done.", tools=("todo",)) as editor:
        session = await editor.new()
        await editor.prompt(session, "Plan it.")
        (plan,) = editor.client.of(session, "plan")
        assert [(one.content, one.status) for one in plan.entries] == [
            ("read", "completed"), ("write", "in_progress"), ("test", "pending"),
        ]  # fmt: skip


async def test_a_cancelled_question_ends_the_turn(tmp_path):
    async with open_editor(tmp_path, READ, EDIT, "Done.", "Fine.") as editor:
        path = editor.folder / "a.py"
        path.write_text("x = 1\n")
        session = await editor.new()
        editor.client.holding.clear()
        running = asyncio.create_task(editor.prompt(session, "Set x to 2."))
        await editor.client.until(lambda: editor.client.asked, "the question")
        await editor.agent.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"
        editor.client.holding.set()
        assert path.read_text() == "x = 1\n"
        assert editor.client.states(session)["edit a.py"][0] == "failed"
        await editor.client.until(lambda: not editor.host.service.approvals(), "its end")


async def test_a_cancelled_command_is_killed(tmp_path):
    command = call("shell", command="echo begun > begun; sleep 1000.125")
    async with open_editor(tmp_path, command, "Done.") as editor:
        session = await editor.new()
        running = asyncio.create_task(editor.prompt(session, "Wait."))
        await editor.client.until(lambda: (editor.folder / "begun").exists(), "the command")
        await editor.agent.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"
        ((status, _),) = editor.client.states(session).values()
        assert status == "failed"
        await editor.client.until(lambda: not _runs("1000.125"), "the end of the command")


def _runs(words):
    """Whether a process has these words in its command line."""
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if words.encode() in one.read_bytes():
                return True
    return False
