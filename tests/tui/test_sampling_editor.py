"""`/sampling`: the editor, values in the command, resetting, and what is refused."""

from dataclasses import replace

import pytest

from app.slash.sampling import applies_otherwise, build_summary, value_of
from app.tui.widgets.sampling_editor import SamplingEditor
from engine.api.generation_defaults import GenerationDefaults, SamplingChoice
from engine.api.request import SamplingParams
from tests.fakes.fake_client import MODEL, FakeClient

CHOICE = SamplingChoice(
    SamplingParams(temperature=0.7, top_p=0.9), frozenset({"temperature", "top_p"}),
    frozenset({"temperature"}),
)  # fmt: skip


def test_only_what_the_branch_set_is_in_a_field():
    assert value_of(CHOICE, "temperature") == "0.7"
    assert value_of(CHOICE, "top_p") == ""
    assert build_summary(CHOICE) == "Sampling of this conversation: temperature=0.7."
    assert build_summary(SamplingChoice()) == "This conversation sets no sampling parameters."


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("top_p", ("0.9", "your settings")),
        ("top_k", ("20", "the model's own")),
        ("min_p", ("0", "default")),
        ("seed", ("a new one for each answer", "default")),
    ],
)
def test_an_empty_field_says_what_applies_and_where_it_comes_from(name, shown):
    default = SamplingChoice(SamplingParams(top_p=0.9), frozenset({"top_p"}))
    assert applies_otherwise(default, GenerationDefaults(top_k=20, top_p=0.5), name) == shown


async def open_editor(ui):
    await ui.ask("/sampling")
    await ui.until(lambda: isinstance(ui.app.screen, SamplingEditor), "the editor")


async def test_values_are_entered_and_used_for_the_next_answer(screen):
    client = FakeClient("an answer")
    client.model = replace(MODEL, generation_defaults=GenerationDefaults(top_k=20))
    async with screen(client=client) as ui:
        await open_editor(ui)
        await ui.shown("temperature", "dry_multiplier", "20 (the model's own)")
        await ui.type("1.5")
        await ui.press("down", "0", "full_stop", "5", "enter")
        assert "Sampling of this conversation: temperature=1.5 top_p=0.5." in ui.toasts
        await ui.ask("hello")
        used = client.requests[-1].sampling
        assert (used.temperature, used.top_p, used.top_k) == (1.5, 0.5, 20)


async def test_a_value_out_of_range_is_explained_and_nothing_changes(screen):
    async with screen("an answer") as ui:
        await open_editor(ui)
        await ui.press("down")
        await ui.type("7")
        await ui.press("enter")
        await ui.shown("top_p must be between 1e-30 and 1, not 7.0.")
        assert isinstance(ui.app.screen, SamplingEditor)
        assert ui.app.focused.id == "sampling-top_p"
        await ui.press("backspace")
        await ui.type("x")
        await ui.press("enter")
        await ui.shown("top_p must be a number, not 'x'.")
        await ui.press("escape")
        assert ui.session.sampling.current.own == frozenset()


async def test_a_value_is_removed_by_emptying_its_field(screen):
    async with screen("an answer") as ui:
        await ui.ask("/sampling temperature=1.5 seed=7")
        await open_editor(ui)
        await ui.press("ctrl+r", "enter", "enter")
        assert ui.session.sampling.current.own == frozenset()
        assert "This conversation sets no sampling parameters." in ui.toasts


async def test_the_command_sets_resets_and_explains(screen):
    async with screen("an answer") as ui:
        await ui.ask("/sampling temperature=0.7 top_p=0.9")
        assert ui.session.sampling.current.own == {"temperature", "top_p"}
        await ui.ask("/sampling temprature=1")
        assert any("Did you mean temperature" in toast for toast in ui.toasts)
        await ui.ask("/sampling temperature=-1")
        assert any("temperature must be between 0" in toast for toast in ui.toasts)
        assert ui.session.sampling.current.params.temperature == 0.7
        await ui.ask("/sampling reset")
        assert ui.session.sampling.current.own == frozenset()


async def test_another_conversation_is_not_affected(screen):
    async with screen("an answer", "another") as ui:
        await ui.ask("/sampling temperature=1.5")
        await ui.ask("hello")
        await ui.answered()
        first = ui.session.tree_id
        await ui.press("ctrl+n")
        assert ui.session.sampling.current.own == frozenset()
        await ui.app.actions.conversations.open(first)
        assert ui.session.sampling.current.params.temperature == 1.5


async def test_the_palette_opens_the_editor(screen):
    async with screen() as ui:
        await ui.press("ctrl+p")
        await ui.type("sampling")
        await ui.shown("Sampling parameters")
        await ui.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, SamplingEditor), "the editor")


async def test_every_field_is_reachable_on_a_small_terminal(screen):
    async with screen(size=(80, 20)) as ui:
        await open_editor(ui)
        await ui.press("up")
        assert ui.app.focused.id == "sampling-max_tokens"
        await ui.shown("max_tokens", "enter applies")


async def test_the_editor_shows_the_length_limit_of_small_models(screen):
    async with screen() as ui:
        await ui.ask("/sampling")
        await ui.shown("1024 (default for a small model)")
