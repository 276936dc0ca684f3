"""The merge dialog: which branch, which kind, what it costs."""

import pytest

from tests.tui.harness import converse


def two_branches(session, client):
    converse(session, client, ("the question", "first answer"))
    client.answers.appendleft("second answer")
    session.branches.regenerate()
    client.finish()
    session.pump()


def three_branches(session, client):
    two_branches(session, client)
    client.answers.appendleft("third answer")
    session.branches.regenerate()
    client.finish()
    session.pump()


async def test_the_kinds_and_their_costs_are_shown_and_escape_changes_nothing(screen):
    async with screen(prepare=two_branches) as ui:
        before = ui.session.version
        await ui.press("escape", "M")
        await ui.shown("Merge into this branch", "first answer", "Graft", "Summary", "Cherry-pick")
        prompt = len(ui.client.requests[0].prompt_ids)
        answer = len(ui.client.tokenizer.encode("first answer")) + 1
        total = prompt + answer + len(ui.client.tokenizer.encode("second answer")) + 1
        await ui.shown(f"Only the common prefix shares KV: {answer} of {total} tokens recomputed.")
        await ui.press("escape")
        await ui.gone("Merge into")
        assert ui.session.version == before


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        ("g", ["the question", "second answer", "first answer"]),
        ("c", ["the question", "first answer"]),
        ("s", ["the question", "second answer", "the gist"]),
    ],
)
async def test_each_kind_merges(screen, key, texts):
    async with screen("the gist", prepare=two_branches) as ui:
        await ui.press("escape", "M")
        await ui.shown("Graft")
        await ui.press(key)
        await ui.gone("Graft")
        await ui.answered()
        assert [node.text for node in ui.session.path()] == texts


@pytest.mark.parametrize("keys", [("enter",), ("j", "enter", "g")])
async def test_a_conversation_that_is_opened_meanwhile_is_not_merged_into(screen, keys):
    async with screen(prepare=three_branches) as ui:
        await ui.press("escape", "M")
        await ui.shown("Merge which branch?")
        await ui.press(*keys[:-1])
        ui.session.conversations.open_new()
        await ui.press(keys[-1])
        assert ui.toasts == ["Another conversation was opened meanwhile."]


async def test_of_several_branches_one_is_picked(screen):
    async with screen(prepare=three_branches) as ui:
        await ui.press("escape", "M")
        await ui.shown("Merge which branch?", "first answer", "second answer")
        await ui.press("j", "enter")
        await ui.shown("Graft")
        await ui.press("c")
        await ui.until(lambda: ui.session.path()[-1].text == "first answer")


async def test_without_another_branch_it_says_so(screen):
    async with screen(prepare=lambda s, c: converse(s, c, ("a", "b"))) as ui:
        await ui.ask("/merge")
        await ui.until(lambda: ui.toasts)
        assert ui.toasts == ["There is no other branch to merge."]
        await ui.ask("/merge graft nowhere")
        await ui.until(lambda: "There is no branch nowhere." in ui.toasts)
