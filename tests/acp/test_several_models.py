"""Several models: an option of the session, loaded when they are chosen."""

import asyncio

import pytest
from acp.exceptions import RequestError

from engine.api.snapshot import EngineState
from tests.acp.editor import open_editor
from tests.fakes.toy_model_set import NamedClient, ToyModelSet


async def test_a_model_is_chosen_loaded_and_answers(tmp_path):
    first, second = NamedClient("one", "From one."), NamedClient("two", "From two.")
    second.state = EngineState.UNLOADED
    async with open_editor(tmp_path, models=ToyModelSet(first, second)) as editor:
        session = await editor.new()
        await editor.client.until(
            lambda: editor.client.of(session, "config_option_update"), "the models"
        )
        (told,) = editor.client.of(session, "config_option_update")
        option = told.config_options[1]
        assert (option.id, option.current_value) == ("model", "one")
        assert [one.value for one in option.options] == ["one", "two"]
        await editor.prompt(session, "Who?")
        chosen = await editor.agent.set_config_option(
            session_id=session, config_id="model", value="two"
        )
        assert chosen.config_options[1].current_value == "two"
        running = asyncio.create_task(editor.prompt(session, "And now?"))
        await editor.client.until(lambda: editor.client.of(session, "tool_call"), "the status")
        assert editor.client.of(session, "tool_call")[0].title.startswith("Loading two")
        second.load(1.0)
        assert (await running).stop_reason == "end_turn"
        assert editor.client.text(session) == "From one.From two."


async def test_an_unknown_model_and_one_that_fails_are_said(tmp_path):
    models = ToyModelSet(NamedClient("one"), NamedClient("two"))
    models.clients["two"].state = EngineState.UNLOADED
    models.failing["two"] = "two does not fit in memory."
    async with open_editor(tmp_path, models=models) as editor:
        session = await editor.new()
        await editor.client.until(
            lambda: editor.client.of(session, "config_option_update"), "the models"
        )
        with pytest.raises(RequestError, match="no model three"):
            await editor.agent.set_config_option(
                session_id=session, config_id="model", value="three"
            )
        await editor.agent.set_config_option(session_id=session, config_id="model", value="two")
        with pytest.raises(RequestError, match="does not fit in memory"):
            await editor.prompt(session, "Hello?")
