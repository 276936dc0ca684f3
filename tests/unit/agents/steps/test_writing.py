"""Texts by a model: as long as the task needs, never cut in a sentence, without what was put around them."""

import pytest

from agents.api.errors import BudgetExhausted
from agents.model.session import ModelSession
from agents.plugins.registry import load_registry
from agents.steps.room import (
    MIN_TEXT_TOKENS,
    SAMPLE,
    answer_tokens,
    text_room,
    tokens_per_character,
)
from agents.steps.writing import Writer, plain_text, text_member, whole_sentences
from engine.api.request import SamplingParams
from tests.fakes.scripted_client import ScriptedClient
from tests.fakes.step_run import FakeStepRun


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("A text.", "A text."),
        ("```\nA text.\n```", "A text."),
        ("```html\n<p>\n```", "<p>"),
        ("Sure, here is the summary:\n\nA text.", "A text."),
        ("Here's the translation:\nEin Text.", "Ein Text."),
        (
            "Here the story begins. It is long:\nand so on.",
            "Here the story begins. It is long:\nand so on.",
        ),
        ("One.\n```\ncode\n```\nTwo.", "One.\n```\ncode\n```\nTwo."),
    ],
)
def test_a_text_loses_its_fence_and_introduction(text, plain):
    assert plain_text(text) == plain


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("One. Two is cut in the mid", "One."),
        ('He said "no." She le', 'He said "no."'),
        ("# Title\n\nA paragraph that is c", "# Title"),
        ("no end at all", "no end at all"),
        ("Version 3.2 is new. It ha", "Version 3.2 is new."),
        ("Done.", "Done."),
    ],
)
def test_a_cut_text_ends_at_a_sentence(text, whole):
    assert whole_sentences(text) == whole


def test_outputs_know_their_text():
    outputs = load_registry().outputs
    texts = {name: text_member(form) for name, form in outputs.items()}
    assert {name for name, member in texts.items() if member} == {
        "Answer", "Artifact", "Lesson", "Merge", "Summary", "Text", "ToolResult",
    }  # fmt: skip


def test_a_character_is_estimated_with_the_models_tokenizer():
    words = tokens_per_character(lambda text: text.split())
    assert words == pytest.approx(1.4 * len(SAMPLE.split()) / len(SAMPLE))
    # A material that is denser than the sample, such as another script, counts instead.
    assert tokens_per_character(list, "漢字") == pytest.approx(1.4)
    assert tokens_per_character(lambda text: text.encode(), "漢字漢字") == 4.0
    assert answer_tokens(1000, 0.3) < 1000 * 0.3


def test_room_follows_the_material_and_what_is_left():
    assert text_room(0, 10_000) == MIN_TEXT_TOKENS
    assert text_room(2_000, 10_000) == MIN_TEXT_TOKENS + 3_000
    assert text_room(2_000, 900) == 900


async def drafts(script, prompts=((1, 2, 3),), *, tokens=100_000, material="", **options):
    client = ScriptedClient(script)
    run = FakeStepRun(tokens=tokens)
    writer = Writer(ModelSession(client), run, material, SamplingParams(temperature=0.0))
    return await writer.drafts(prompts, shared_tokens=2, **options), client, run


async def test_texts_share_a_prompt_and_have_room_by_their_material():
    written, client, run = await drafts(
        ["One.", "Two."], ((1, 2, 3), (1, 2, 4)), material="a b c d " * 500
    )
    assert [one.text for one in written] == ["One.", "Two."]
    assert all(one.is_whole for one in written)
    assert {one.sampling.grammar for one in client.requests} == {None}
    assert min(one.sampling.max_tokens for one in client.requests) > 4_000
    assert run.usage.generated_tokens == 8


async def test_a_budget_is_divided_and_a_small_one_refused():
    _, client, _ = await drafts(["One.", "Two."], ((1, 2, 3), (1, 2, 4)), tokens=205)
    assert [one.sampling.max_tokens for one in client.requests] == [100, 100]
    with pytest.raises(BudgetExhausted, match="are left for a text"):
        await drafts(["One."], tokens=20)


async def test_further_drafts_have_their_own_temperature():
    _, client, _ = await drafts(["One.", "Two."], ((1, 2), (1, 2)), temperatures=(0.4, 0.9))
    assert [one.sampling.temperature for one in client.requests] == [0.4, 0.9]
    assert len({one.sampling.seed for one in client.requests}) == 2
