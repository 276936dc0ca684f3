"""What a prompt may have, how it is cancelled, what is said while a model is loaded, and what goes wrong."""

import asyncio
import base64
from dataclasses import replace

import pytest
from acp import embedded_text_resource, image_block, resource_block, resource_link_block, text_block
from acp.exceptions import RequestError
from acp.helpers import audio_block

from engine.api.snapshot import EngineState
from tests.acp.editor import open_editor
from tests.fakes.fake_client import FakeClient
from tests.fakes.images import png

ENDLESS = [f"w{number} " for number in range(100_000)]


async def test_a_linked_file_is_read_and_named(tmp_path):
    async with open_editor(tmp_path, "It holds.") as editor:
        path = editor.folder / "a note.md"
        path.write_text("the content")
        session = await editor.new()
        link = resource_link_block("a note.md", path.as_uri() + "#L3")
        await editor.prompt(session, [text_block("Read "), link, text_block(" please.")])
        assert 'Read @"a note.md" please.' in editor.prompt_text()
        assert "the content" in editor.prompt_text()


async def test_a_linked_file_has_its_unsaved_text(tmp_path):
    async with open_editor(tmp_path, "It holds.", reads=True) as editor:
        path = editor.folder / "a.py"
        path.write_text("saved")
        editor.client.buffers[str(path)] = "not saved yet"
        session = await editor.new()
        await editor.prompt(session, [resource_link_block("a.py", path.as_uri())])
        assert "not saved yet" in editor.prompt_text()


async def test_an_editor_that_does_not_answer_for_a_file_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("app.acp.session.ANSWER_S", 0.05)
    async with open_editor(tmp_path, "It holds.", reads=True) as editor:

        async def silent(**given):
            await asyncio.Event().wait()

        monkeypatch.setattr(editor.client, "read_text_file", silent)
        path = editor.folder / "a.py"
        path.write_text("what is saved")
        session = await editor.new()
        await editor.prompt(session, [resource_link_block("a.py", path.as_uri())])
        assert "what is saved" in editor.prompt_text()


async def test_an_embedded_text_is_part_of_the_message(tmp_path):
    async with open_editor(tmp_path, "It holds.") as editor:
        uri = (editor.folder / "b.py").as_uri()
        session = await editor.new()
        resource = resource_block(embedded_text_resource(uri, "b = 1"))
        await editor.prompt(session, [text_block("See "), resource])
        assert "See @b.py" in editor.prompt_text()
        assert "b = 1" in editor.prompt_text()


async def test_a_file_that_was_typed_is_read_in_the_folder_of_the_session(tmp_path):
    async with open_editor(tmp_path, "It holds.") as editor:
        (editor.folder / "typed.txt").write_text("typed content")
        session = await editor.new()
        await editor.prompt(session, "What is in @typed.txt?")
        assert "typed content" in editor.prompt_text()


async def test_a_link_to_the_web_stays_a_link_and_a_folder_its_name(tmp_path):
    async with open_editor(tmp_path, "Yes.") as editor:
        (editor.folder / "sub").mkdir()
        session = await editor.new()
        web = resource_link_block("page", "https://example.org/a")
        folder = resource_link_block("sub", (editor.folder / "sub").as_uri())
        await editor.prompt(session, [web, text_block(" "), folder])
        assert "[page](https://example.org/a) @sub" in editor.prompt_text()


async def test_an_image_is_seen_by_a_model_that_sees(tmp_path):
    engine = FakeClient("A cat.", sees_images=True)
    async with open_editor(tmp_path, engine=engine) as editor:
        session = await editor.new()
        data = base64.b64encode(png(8, 8)).decode()
        await editor.prompt(session, [text_block("What is it?"), image_block(data, "image/png")])
        assert len(editor.engine.requests[-1].images) == 1


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        ([], "The message is empty"),
        ([text_block("  ")], "The message is empty"),
        ([audio_block("AAAA", "audio/wav")], "audio"),
        ([image_block("!!", "image/png")], "no base64"),
        ([image_block("AAAA", "image/png")], "no PNG"),
        ([resource_link_block("x", "file:///no/such/file")], "can't be attached"),
        ([resource_link_block("x", "file:///" + "x" * 5000)], "There is no file"),
        ([text_block("/securty_audit .")], "There is no command /securty_audit"),
    ],
)
async def test_what_cannot_be_answered_is_said_in_a_sentence(tmp_path, blocks, problem):
    async with open_editor(tmp_path, "Fine.") as editor:
        session = await editor.new()
        with pytest.raises(RequestError, match=problem):
            await editor.prompt(session, blocks)
        assert (await editor.prompt(session, "Hello?")).stop_reason == "end_turn"
        assert editor.client.text(session) == "Fine."


async def test_an_image_needs_a_model_that_sees(tmp_path):
    async with open_editor(tmp_path, "Fine.") as editor:
        session = await editor.new()
        data = base64.b64encode(png(8, 8)).decode()
        with pytest.raises(RequestError, match="image"):
            await editor.prompt(session, [image_block(data, "image/png")])


async def test_a_cancelled_answer_keeps_its_text(tmp_path):
    async with open_editor(tmp_path, ENDLESS, "Fine.") as editor:
        session = await editor.new()
        running = asyncio.create_task(editor.prompt(session, "Count!"))
        await editor.client.until(lambda: "w1" in editor.client.text(session), "the first words")
        await editor.agent.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"
        assert editor.client.text(session).startswith("w0 w1")
        assert (await editor.prompt(session, "And?")).stop_reason == "end_turn"
        assert "w0 w1" in editor.prompt_text()


async def test_a_second_prompt_is_refused_while_one_runs(tmp_path):
    async with open_editor(tmp_path, ENDLESS) as editor:
        session = await editor.new()
        running = asyncio.create_task(editor.prompt(session, "Count!"))
        await editor.client.until(lambda: editor.client.text(session), "the first words")
        with pytest.raises(RequestError, match="is answering a prompt"):
            await editor.prompt(session, "Hello?")
        with pytest.raises(RequestError, match="is answering a prompt"):
            await editor.agent.load_session(
                cwd=str(editor.folder), session_id=session, mcp_servers=[]
            )
        await editor.agent.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"


async def test_a_cancelled_session_leaves_the_other_one_running(tmp_path):
    async with open_editor(tmp_path, ENDLESS, ENDLESS) as editor:
        one, other = await editor.new(), await editor.new()
        first = asyncio.create_task(editor.prompt(one, "Count!"))
        second = asyncio.create_task(editor.prompt(other, "Count, too!"))
        await editor.client.until(lambda: editor.client.text(one) and editor.client.text(other))
        await editor.agent.cancel(session_id=one)
        assert (await first).stop_reason == "cancelled"
        said = len(editor.client.text(other))
        await editor.client.until(lambda: len(editor.client.text(other)) > said)
        await editor.agent.cancel(session_id=other)
        assert (await second).stop_reason == "cancelled"


async def test_cancelling_nothing_changes_nothing(tmp_path):
    async with open_editor(tmp_path, "Fine.") as editor:
        session = await editor.new()
        await editor.agent.cancel(session_id=session)
        await editor.agent.cancel(session_id="none")
        assert (await editor.prompt(session, "Hello?")).stop_reason == "end_turn"


async def test_a_prompt_waits_for_its_model_and_says_so(tmp_path):
    engine = FakeClient("Fine.", state=EngineState.LOADING)
    async with open_editor(tmp_path, engine=engine) as editor:
        session = await editor.new()
        running = asyncio.create_task(editor.prompt(session, "Hello?"))
        await editor.client.until(lambda: editor.client.of(session, "tool_call"), "the status")
        (shown,) = editor.client.of(session, "tool_call")
        assert shown.title.startswith("Loading")
        assert shown.status == "in_progress"
        engine.load(0.5)
        await editor.client.until(
            lambda: any("50 %" in (one.title or "") for one in updates_of(editor, session))
        )
        engine.load(1.0)
        assert (await running).stop_reason == "end_turn"
        assert updates_of(editor, session)[-1].status == "completed"
        assert editor.client.text(session) == "Fine."


def updates_of(editor, session):
    return editor.client.of(session, "tool_call_update")


async def test_a_session_begins_before_the_engine_is_there(tmp_path):
    engine = FakeClient("Fine.")
    async with open_editor(tmp_path, engine=engine, opened=False) as editor:
        session = await editor.new()
        running = asyncio.create_task(editor.prompt(session, "Hello?"))
        await editor.client.until(lambda: editor.client.of(session, "tool_call"), "the status")
        assert editor.client.of(session, "tool_call")[0].title == "Fetching the model 10 %"
        editor.opening.opened.set_result(editor.host)
        assert (await running).stop_reason == "end_turn"
        await editor.client.until(
            lambda: editor.client.of(session, "available_commands_update"), "the commands"
        )


async def test_waiting_for_a_model_can_be_cancelled(tmp_path):
    engine = FakeClient("Fine.", state=EngineState.LOADING)
    async with open_editor(tmp_path, engine=engine) as editor:
        session = await editor.new()
        running = asyncio.create_task(editor.prompt(session, "Hello?"))
        await editor.client.until(lambda: editor.client.of(session, "tool_call"), "the status")
        await editor.agent.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"
        engine.load(1.0)
        assert (await editor.prompt(session, "Again?")).stop_reason == "end_turn"


async def test_an_engine_without_a_model_says_so(tmp_path):
    engine = FakeClient(state=EngineState.UNLOADED)
    engine.error = "The model none is not installed."
    async with open_editor(tmp_path, engine=engine) as editor:
        session = await editor.new()
        with pytest.raises(RequestError, match=r"The model none is not installed\."):
            await editor.prompt(session, "Hello?")


async def test_a_host_that_cannot_be_opened_is_said_at_the_prompt(tmp_path):
    async with open_editor(tmp_path, opened=False) as editor:
        editor.opening.opened.set_exception(OSError("no room"))
        session = await editor.new()
        with pytest.raises(RequestError, match="no room"):
            await editor.prompt(session, "Hello?")


async def test_a_message_that_is_too_long_can_be_sent_after_shortening(tmp_path):
    engine = FakeClient("One.", "Two.")
    engine.model = replace(engine.model, context_length=256)
    async with open_editor(tmp_path, engine=engine) as editor:
        session = await editor.new()
        await editor.prompt(session, "x y " * 30)
        with pytest.raises(RequestError, match="/shorten"):
            await editor.prompt(session, "z w " * 40)
        assert (await editor.prompt(session, "/shorten drop")).stop_reason == "end_turn"
        assert editor.client.text(session).endswith("Two.")


async def test_a_client_that_vanishes_stops_the_answer(tmp_path):
    engine = FakeClient(ENDLESS)
    async with open_editor(tmp_path, engine=engine) as editor:
        session = await editor.new()
        running = asyncio.create_task(editor.prompt(session, "Count!"))
        await editor.client.until(lambda: editor.client.text(session), "the first words")
        await editor.agent.close()
        running.cancel()
    assert editor.serving.done()
    assert engine.cancelled
