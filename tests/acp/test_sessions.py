"""Sessions: begun, prompted, loaded, listed, forked, closed, deleted; two side by side."""

import asyncio
from functools import partial

import pytest
from acp.exceptions import RequestError

from tests.acp.editor import call, open_editor


async def test_the_agent_says_what_it_is_and_can(tmp_path):
    async with open_editor(tmp_path, initialized=False) as editor:
        said = await editor.agent.initialize(protocol_version=7)
        assert said.protocol_version == 1
        assert said.agent_info.name == "pravaha"
        assert said.agent_capabilities.load_session
        assert said.agent_capabilities.prompt_capabilities.embedded_context
        assert not said.auth_methods


async def test_an_answer_is_streamed_and_its_tokens_are_counted(tmp_path):
    async with open_editor(tmp_path, "It is blue.") as editor:
        session = await editor.new()
        answer = await editor.prompt(session, "What colour is the sky?")
        assert answer.stop_reason == "end_turn"
        assert editor.client.text(session) == "It is blue."
        assert len(editor.client.of(session, "agent_message_chunk")) > 1
        assert answer.usage.output_tokens > 0
        (usage,) = editor.client.of(session, "usage_update")
        assert 0 < usage.used < usage.size
        (info,) = editor.client.of(session, "session_info_update")
        assert info.title.startswith("What colour")


async def test_a_conversation_goes_on(tmp_path):
    async with open_editor(tmp_path, "One.", "Two.") as editor:
        session = await editor.new()
        await editor.prompt(session, "First?")
        await editor.prompt(session, "Second?")
        assert "One." in editor.prompt_text()
        assert "First?" in editor.prompt_text()


async def test_two_sessions_are_answered_side_by_side(tmp_path):
    async with open_editor(tmp_path, "a b c d e f", "g h i j k l") as editor:
        one, other = await editor.new(), await editor.new()
        await asyncio.gather(editor.prompt(one, "First?"), editor.prompt(other, "Second?"))
        assert {editor.client.text(one), editor.client.text(other)} == {
            "a b c d e f",
            "g h i j k l",
        }


async def test_a_session_is_loaded_with_what_was_said(tmp_path):
    async with open_editor(
        tmp_path, "One.", f"I look. {call('glob', pattern='*')}", "Two."
    ) as editor:
        (editor.folder / "a.txt").write_text("hello")
        session = await editor.new()
        await editor.prompt(session, "First?")
        await editor.prompt(session, "Look!")
    async with open_editor(tmp_path, "Three.") as editor:
        loaded = await editor.agent.load_session(
            cwd=str(editor.folder), session_id=session, mcp_servers=[]
        )
        assert loaded.modes.current_mode_id == "ask"
        kinds = [one.session_update for one in editor.client.updates[session]]
        said = ["user_message_chunk", "agent_message_chunk"]
        assert kinds[:5] == [*said, *said, "tool_call"]
        assert editor.client.text(session, "user_message_chunk") == "First?Look!"
        assert "One." in editor.client.text(session)
        assert "<tool_call>" not in editor.client.text(session)
        (made,) = editor.client.of(session, "tool_call")
        assert (made.title, made.kind, made.status) == ("glob *", "search", "completed")
        assert "a.txt" in made.content[0].content.text
        await editor.prompt(session, "And?")
        assert "One." in editor.prompt_text()


async def test_a_session_is_resumed_without_its_messages(tmp_path):
    async with open_editor(tmp_path, "One.") as editor:
        session = await editor.new()
        await editor.prompt(session, "First?")
    async with open_editor(tmp_path, "Two.") as editor:
        await editor.agent.resume_session(cwd=str(editor.folder), session_id=session)
        assert not editor.client.of(session, "user_message_chunk")
        await editor.prompt(session, "Second?")
        assert "One." in editor.prompt_text()


async def test_a_fork_goes_on_by_itself(tmp_path):
    async with open_editor(tmp_path, "One.", "Two.", "Three.") as editor:
        session = await editor.new()
        await editor.prompt(session, "First?")
        fork = await editor.agent.fork_session(cwd=str(editor.folder), session_id=session)
        assert fork.session_id != session
        await editor.prompt(fork.session_id, "Second?")
        assert "One." in editor.prompt_text()
        await editor.prompt(session, "Third?")
        assert "Second?" not in editor.prompt_text()


async def test_a_session_without_messages_can_be_forked(tmp_path):
    async with open_editor(tmp_path, "One.") as editor:
        session = await editor.new()
        fork = await editor.agent.fork_session(cwd=str(editor.folder), session_id=session)
        assert (await editor.prompt(fork.session_id, "First?")).stop_reason == "end_turn"


async def test_conversations_are_listed_newest_first_and_by_folder(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    async with open_editor(tmp_path, "One.", "Two.") as editor:
        first = await editor.new()
        await editor.prompt(first, "First?")
        second = await editor.new(other)
        await editor.prompt(second, "Second?")
        listed = (await editor.agent.list_sessions()).sessions
        assert [one.session_id for one in listed] == [second, first]
        assert [one.cwd for one in listed] == [str(other), str(editor.folder)]
        assert listed[1].title.startswith("First")
        assert listed[0].updated_at.startswith("20")
        here = (await editor.agent.list_sessions(cwd=str(editor.folder))).sessions
        assert [one.session_id for one in here] == [first]
        with pytest.raises(RequestError, match="no cursor 'x'"):
            await editor.agent.list_sessions(cursor="x")


async def test_a_long_list_comes_in_pages(tmp_path, monkeypatch):
    monkeypatch.setattr("app.acp.server.PAGE", 2)
    async with open_editor(tmp_path, "One.", "Two.", "Three.") as editor:
        made = []
        for text in ("First?", "Second?", "Third?"):
            made.append(await editor.new())
            await editor.prompt(made[-1], text)
        first = await editor.agent.list_sessions()
        rest = await editor.agent.list_sessions(cursor=first.next_cursor)
        found = [one.session_id for one in (*first.sessions, *rest.sessions)]
        assert found == made[::-1]
        assert rest.next_cursor is None


async def test_a_closed_session_is_unknown_but_can_be_loaded(tmp_path):
    async with open_editor(tmp_path, "One.") as editor:
        session = await editor.new()
        await editor.prompt(session, "First?")
        await editor.agent.close_session(session_id=session)
        with pytest.raises(RequestError, match="There is no session"):
            await editor.prompt(session, "Second?")
        await editor.agent.load_session(cwd=str(editor.folder), session_id=session, mcp_servers=[])
        assert editor.client.text(session, "user_message_chunk") == "First?"


async def test_a_deleted_session_is_listed_no_more(tmp_path):
    async with open_editor(tmp_path, "One.") as editor:
        session = await editor.new()
        await editor.prompt(session, "First?")
        connection = editor.agent._conn
        await connection.send_request("session/delete", {"sessionId": session})
        assert not (await editor.agent.list_sessions()).sessions
        with pytest.raises(RequestError, match="There is no session"):
            await connection.send_request("session/delete", {"sessionId": "none"})


@pytest.mark.parametrize(
    ("cwd", "problem"), [("project", "absolute path"), ("/no/such/folder", "There is no folder")]
)
async def test_a_folder_that_is_none_is_refused(tmp_path, cwd, problem):
    async with open_editor(tmp_path, "One.") as editor:
        with pytest.raises(RequestError, match=problem):
            await editor.new(cwd)
        for method in ("load_session", "resume_session", "fork_session"):
            with pytest.raises(RequestError, match=problem):
                await getattr(editor.agent, method)(cwd=cwd, session_id="x", mcp_servers=[])
        assert (await editor.prompt(await editor.new(), "First?")).stop_reason == "end_turn"


@pytest.mark.parametrize("method", ["load_session", "resume_session", "fork_session"])
async def test_an_unknown_session_is_refused(tmp_path, method):
    async with open_editor(tmp_path) as editor:
        with pytest.raises(RequestError, match="There is no session 'none'") as error:
            await getattr(editor.agent, method)(
                cwd=str(editor.folder), session_id="none", mcp_servers=[]
            )
        assert error.value.code == -32002


async def test_there_is_nothing_to_authenticate(tmp_path):
    async with open_editor(tmp_path) as editor:
        with pytest.raises(RequestError, match="no way to authenticate"):
            await editor.agent.authenticate(method_id="key")


async def test_modes_are_set_both_ways(tmp_path):
    async with open_editor(tmp_path) as editor:
        made = await editor.agent.new_session(cwd=str(editor.folder), mcp_servers=[])
        session = made.session_id
        assert [one.id for one in made.modes.available_modes] == ["ask", "auto", "deny"]
        assert made.modes.current_mode_id == "ask"
        assert made.config_options[0].current_value == "ask"
        await editor.agent.set_session_mode(session_id=session, mode_id="auto")
        (told,) = editor.client.of(session, "config_option_update")
        assert told.config_options[0].current_value == "auto"
        options = await editor.agent.set_config_option(
            session_id=session, config_id="mode", value="deny"
        )
        assert options.config_options[0].current_value == "deny"
        (told,) = editor.client.of(session, "current_mode_update")
        assert told.current_mode_id == "deny"
        with pytest.raises(RequestError, match="no mode 'yolo'"):
            await editor.agent.set_session_mode(session_id=session, mode_id="yolo")
        with pytest.raises(RequestError, match="no option 'colour'"):
            await editor.agent.set_config_option(
                session_id=session, config_id="colour", value="red"
            )


async def test_a_prompt_is_answered_when_its_session_is_closed_meanwhile(tmp_path):
    async with open_editor(tmp_path, f"I do. {call('shell', command='true')}", "Done.") as editor:
        session = await editor.new()
        editor.client.holding.clear()
        prompting = asyncio.create_task(editor.prompt(session, "Do it!"))
        await editor.client.until(lambda: editor.client.asked, "a question")
        await editor.agent.close_session(session_id=session)
        async with asyncio.timeout(20):
            assert (await prompting).stop_reason == "cancelled"
        editor.client.holding.set()


async def test_a_session_that_is_loaded_twice_at_once_stays_open(tmp_path):
    async with open_editor(tmp_path, "One.", "Two.") as editor:
        session = await editor.new()
        await editor.prompt(session, "First?")
        await editor.agent.close_session(session_id=session)
        load = partial(
            editor.agent.load_session,
            cwd=str(editor.folder),
            session_id=session,
            mcp_servers=[],
        )
        answers = await asyncio.gather(load(), load(), return_exceptions=True)
        assert not isinstance(answers[-1], Exception)
        assert (await editor.prompt(session, "Second?")).stop_reason == "end_turn"
