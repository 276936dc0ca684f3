"""Several models on one screen: the list, the model of a branch, and answers of two models side by side."""

import pytest

from app.tui.widgets.model_picker import ModelPicker
from engine.api.snapshot import EngineState
from tests.fakes.toy_model_set import NamedClient, ToyModelSet

NARROW = (80, 24)


@pytest.fixture
def big():
    return NamedClient("coder-1.5b-q4", "by the big one", "again by the big one")


@pytest.fixture
def small():
    return NamedClient("coder-0.5b-q4", "by the small one", "again by the small one")


@pytest.fixture
def models(big, small):
    return ToyModelSet(big, small)


async def finished(ui, client):
    """Let a model finish its answers."""
    client.finish()
    await ui.until(lambda: not ui.session.answers.running, "the end of the answers")


async def asked(ui, client, text):
    await ui.ask(text)
    await finished(ui, client)


async def navigate(ui):
    await ui.press("shift+tab")


@pytest.mark.parametrize("size", [NARROW, (120, 36)])
async def test_the_list_shows_state_memory_and_what_the_keys_do(screen, models, small, size):
    small.state = EngineState.UNLOADED
    async with screen(models=models, size=size) as ui:
        await ui.press("shift+tab", "I")
        await ui.shown("* coder-1.5b-q4", "ready", "1.0 GiB used")
        await ui.shown("coder-0.5b-q4", "not loaded", "1.0 MiB file")
        await ui.shown("l loads, u unloads, r loads again", "enter answers this branch")


async def test_the_header_and_the_answers_follow_the_model_of_the_branch(
    screen, models, big, small
):
    async with screen(models=models) as ui:
        await asked(ui, big, "first")
        await ui.shown("coder-1.5b-q4 · Q4_1", "by the big one")
        await ui.press("shift+tab", "I")
        await ui.shown("enter answers this branch")
        await ui.press("down", "enter")
        await ui.shown("coder-0.5b-q4 · Q4_1")
        assert any("coder-0.5b-q4 answers this branch from here on" in one for one in ui.toasts)
        assert any("coder-1.5b-q4 wrote as text" in one for one in ui.toasts)
        await asked(ui, small, "second")
        await ui.shown("≋ coder-0.5b-q4", "by the small one")
        await ui.ask("/switch 3")
        await ui.until(lambda: ui.session.model.current == "coder-0.5b-q4", "the end of the branch")


async def test_the_samples_of_the_stats_are_those_of_the_branchs_model(screen, models, big):
    async with screen(models=models) as ui:
        await asked(ui, big, "first")
        of_big = ui.app.drawing.presenter.history
        await ui.ask("/model coder-0")
        await ui.until(lambda: ui.app.drawing.presenter.history is not of_big, "another history")
        await ui.ask("/model coder-1")
        await ui.until(lambda: ui.app.drawing.presenter.history is of_big, "the first history")


async def test_one_key_has_the_last_answer_given_by_the_other_model(screen, models, big, small):
    async with screen(models=models, size=(120, 36)) as ui:
        await asked(ui, big, "question")
        await navigate(ui)
        await ui.press("o")
        await ui.until(lambda: small.requests, "the request")
        await finished(ui, small)
        await ui.shown("by the small one", "2/2", "≋ coder-0.5b-q4")
        await ui.shown("≋ 0.5b", "≋ 1.5b")  # the tree
        assert [ui.session.tree[one].model for one in ui.session.tree.leaves()] == [
            "coder-1.5b-q4",
            "coder-0.5b-q4",
        ]
        await ui.press("h")
        await ui.shown("by the big one", "coder-1.5b-q4 · Q4_1")


async def test_with_no_other_model_loaded_the_key_asks_which(screen, models, big, small):
    small.state = EngineState.UNLOADED
    async with screen(models=models) as ui:
        await asked(ui, big, "question")
        await navigate(ui)
        await ui.press("o")
        await ui.shown("enter answers again")
        await ui.press("down", "enter")
        await ui.until(lambda: models.changes == [("load", "coder-0.5b-q4")], "the load")
        await ui.shown("loading 0%")
        small.load(1.0)
        await ui.until(lambda: small.requests, "the request")
        await finished(ui, small)
        await ui.shown("by the small one", "2/2")


async def test_models_are_loaded_unloaded_and_loaded_again_in_the_list(screen, models, small):
    async with screen(models=models) as ui:
        await ui.press("shift+tab", "I")
        await ui.shown("coder-0.5b-q4")
        await ui.press("down", "u")
        await ui.until(lambda: models.changes == [("unload", "coder-0.5b-q4")], "the unload")
        await ui.shown("not loaded")
        await ui.press("l")
        await ui.shown("loading 0%")
        small.load(0.5)
        await ui.shown("loading 50%")
        small.load(1.0)
        await ui.gone("loading 50%")
        await ui.press("r")
        await ui.until(lambda: models.changes[2:] == [("reload", "coder-0.5b-q4")], "the reload")
        assert isinstance(ui.app.screen, ModelPicker)


async def test_the_command_chooses_loads_and_unloads(screen, models, big, small):
    async with screen(models=models) as ui:
        await ui.ask("/model coder-0")
        await ui.until(lambda: ui.session.model.current == "coder-0.5b-q4", "the choice")
        await ui.ask("/model unload coder-1")
        await ui.until(lambda: models.changes == [("unload", "coder-1.5b-q4")], "the unload")
        await ui.ask("/model nowhere")
        await ui.until(lambda: any("No model called nowhere" in one for one in ui.toasts), "help")
        assert ui.prompt.text == "/model nowhere"
        await ui.ask("/model coder-1 now")
        await ui.until(lambda: any("none is stopped" in one for one in ui.toasts), "the refusal")


async def test_a_fork_may_name_a_model(screen, models, big, small):
    async with screen(models=models) as ui:
        await asked(ui, big, "question")
        await ui.ask("/fork coder-0")
        await ui.until(lambda: ui.session.model.current == "coder-0.5b-q4", "the fork")
        assert any("Branch fork begins here. coder-0.5b-q4" in one for one in ui.toasts)
        await asked(ui, small, "more")
        await ui.shown("by the small one")


async def test_an_answer_goes_on_while_another_branch_with_another_model_is_open(
    screen, models, big, small
):
    async with screen(models=models) as ui:
        await asked(ui, big, "question")
        first = ui.session.head
        await ui.ask("long")
        assert len(big._running) == 1
        ui.session.branches.rewind(first)
        ui.session.model.choose("coder-0.5b-q4")
        await ui.app.show_chat()
        await ui.shown("coder-0.5b-q4 · Q4_1")
        big.finish()
        await ui.until(lambda: not ui.session.answers.running, "the end of the answer")
        texts = [ui.session.tree[one].text for one in ui.session.tree.leaves()]
        assert texts == ["again by the big one"]


async def test_a_model_that_is_gone_is_named_once(screen, models, big, tmp_path):
    async with screen(models=models) as ui:
        await asked(ui, big, "question")
    third = ToyModelSet(NamedClient("third"))
    async with screen(models=third) as ui:
        hint = "Answered by coder-1.5b-q4, which is not installed here: third goes on."
        await ui.until(lambda: hint in ui.toasts, "the hint")


async def test_a_model_that_is_not_loaded_is_no_failure(screen, models, big):
    big.state = EngineState.UNLOADED
    async with screen(models=models) as ui:
        await ui.shown("coder-1.5b-q4 is not loaded: a message loads it.", "○ not loaded")
        await ui.ask("question")
        await ui.shown("loading 0%")
        big.load(1.0)
        await ui.until(lambda: big.requests, "the request")
        await finished(ui, big)
        await ui.shown("by the big one")
