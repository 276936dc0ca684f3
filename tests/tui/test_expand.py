"""Answers side by side: x and a number, the strip of cards, and every key of it."""

import pytest

from app.tui.widgets.cards import AskCount, Card, CardStrip
from engine.conversations.tree import NodeStatus
from tests.tui.harness import converse

ANSWERS = [f"answer {number} speaks of rivers" for number in range(1, 5)]


def rivers(session, client):
    converse(session, client, ("Tell me of rivers", "All about rivers."))


async def expanded(ui, count=4):
    await ui.press("shift+tab", "x", str(count))
    await ui.shown(f"{count} answers")


def strip(ui):
    return ui.app.query_one(CardStrip)


async def test_x_waits_for_a_number_and_the_status_bar_says_so(screen):
    async with screen(prepare=rivers) as ui:
        await ui.press("shift+tab", "x")
        await ui.shown("how many answers side by side? 2–9", "34 tok, shared by all", "NAVIGATE x…")
        assert len(ui.client.requests) == 1


async def test_esc_drops_the_pending_key_and_nothing_else(screen):
    async with screen(prepare=rivers) as ui:
        await ui.press("shift+tab", "k", "x", "escape")
        await ui.gone("x…")
        assert ui.transcript.selected is not None
        assert ui.app.focused.id == "messages"
        await ui.press("4")
        assert ui.app.layout.pane == "stats"


async def test_another_key_drops_the_pending_key_and_keeps_its_meaning(screen):
    async with screen(prepare=rivers) as ui:
        for key in ("i", "1", "g"):
            await ui.press("shift+tab", "x", key)
            await ui.gone("x…")
            assert ui.prompt.has_focus is (key != "g")
            assert (ui.transcript.selected is not None) is (key == "g")
            assert not ui.app.query_one(AskCount).display


async def test_cards_stream_together_from_one_prefill(screen):
    async with screen(*ANSWERS, prepare=rivers, size=(160, 48)) as ui:
        await expanded(ui)
        assert strip(ui).has_focus
        ui.client.step(2)
        await ui.shown("answer 1", "answer 4", "4 answers, 4 running", "≋ running")
        await ui.answered()
        await ui.shown(*ANSWERS, "● done", "4 × 34 → 37 prefilled", "ppl 1.65")
        assert len([card for card in ui.app.query(Card) if card.display]) == 4


async def test_only_the_cards_with_new_text_are_written(screen, monkeypatch):
    async with screen(ANSWERS[0], (), prepare=rivers, size=(160, 48)) as ui:
        await expanded(ui, 2)
        await ui.shown("2 ⋯ reading")
        written = []
        update = Card.update
        monkeypatch.setattr(
            Card, "update", lambda card, *a, **o: (written.append(card), update(card, *a, **o))
        )
        ui.client.step(3)
        await ui.shown("answer 1 speaks")
        assert set(written) == {ui.app.query(Card)[0]}


async def test_enter_adopts_the_selected_card_and_keeps_the_others_as_siblings(screen):
    async with screen(*ANSWERS, prepare=rivers, size=(160, 48)) as ui:
        await expanded(ui)
        await ui.answered()
        await ui.press("l", "l", "enter")
        await ui.settled()
        assert ui.session.path()[-1].text == ANSWERS[2]
        assert len(ui.session.tree.siblings(ui.session.head)) == 5
        assert not strip(ui).display
        assert ui.prompt.has_focus
        assert ui.last.source == ANSWERS[2]


@pytest.mark.parametrize("columns", [120, 140])
async def test_four_answers_fit_beside_each_other(screen, columns):
    async with screen(*ANSWERS, prepare=rivers, size=(columns, 36)) as ui:
        await expanded(ui)
        cards = [card for card in ui.app.query(Card) if card.display]
        assert len(cards) == 4
        assert not ui.app.query_one("#left").display
        await ui.answered()
        await ui.press("ctrl+t")
        assert ui.app.query_one("#left").display
        assert ui.app.selection.in_tree
        await ui.press("escape")
        assert not ui.app.query_one("#left").display


async def test_h_l_and_digits_select_and_page(screen):
    async with screen(*ANSWERS, prepare=rivers, size=(80, 30)) as ui:
        await expanded(ui)
        await ui.answered()
        await ui.shown("1–3 of 4", ANSWERS[0][:8])
        await ui.press("l", "l", "l")
        await ui.shown("  4 of 4", "answer 4")
        await ui.press("h")
        await ui.shown("1–3 of 4")
        await ui.press("4", "l", "right")
        await ui.shown("  4 of 4")
        assert strip(ui).selected == strip(ui).node_ids[3]
        await ui.press("left", "9")
        assert strip(ui).selected == strip(ui).node_ids[2]
        assert ui.app.layout.pane == "chat"


async def test_prune_takes_the_selected_answer_and_undo_brings_it_back(screen):
    async with screen(*ANSWERS, prepare=rivers, size=(160, 48)) as ui:
        await expanded(ui)
        await ui.answered()
        await ui.press("2", "D")
        await ui.shown("3 answers")
        await ui.gone(ANSWERS[1])
        assert len(ui.session.tree.siblings(ui.session.head)) == 4
        await ui.press("u")
        await ui.shown("4 answers", ANSWERS[1])


async def test_prune_of_all_answers_closes_the_strip(screen):
    async with screen(*ANSWERS, prepare=rivers, size=(160, 48)) as ui:
        await expanded(ui, 2)
        await ui.answered()
        await ui.press("D", "D")
        await ui.settled()
        assert not strip(ui).display
        assert ui.app.focused.id == "messages"
        assert ui.session.path()[-1].text == "All about rivers."


async def test_s_stops_the_selected_answer_only(screen):
    async with screen(*ANSWERS, prepare=rivers, size=(160, 48)) as ui:
        await expanded(ui)
        ui.client.step(2)
        await ui.press("3", "s")
        ui.client.step()
        await ui.shown("3 ■ stopped")
        states = [ui.session.view(one).status for one in strip(ui).node_ids]
        assert states.count(NodeStatus.STOPPED) == 1
        assert states[2] is NodeStatus.STOPPED
        assert len(ui.session.answers.running) == 3


async def test_esc_closes_the_strip_and_the_answers_go_on(screen):
    async with screen(*ANSWERS, prepare=rivers, size=(160, 48)) as ui:
        await expanded(ui)
        ui.client.step(1)
        await ui.press("escape")
        await ui.gone("4 answers")
        assert ui.app.focused.id == "messages"
        assert len(ui.session.answers.running) == 4
        assert ui.client.cancelled == []
        await ui.answered()
        await ui.until(lambda: not ui.session.answers.running, "the end of all answers")
        texts = [ui.session.view(one).text for one in ui.session.tree.siblings(ui.session.head)]
        assert texts[1:] == ANSWERS


async def test_an_expansion_that_the_engine_refuses_is_reported(screen):
    async with screen() as ui:
        await ui.press("shift+tab", "x")
        assert ui.toasts == ["The conversation is empty: send a message first."]


async def test_another_conversation_has_no_strip(screen):
    async with screen(*ANSWERS, prepare=rivers, size=(160, 48)) as ui:
        await expanded(ui)
        await ui.answered()
        await ui.press("ctrl+n")
        await ui.gone("4 answers")
        assert not ui.app.screen.has_class("-cards")


async def test_a_click_selects_and_a_double_click_adopts(screen):
    async with screen(*ANSWERS, prepare=rivers, size=(160, 48)) as ui:
        await expanded(ui)
        await ui.answered()
        await ui.pilot.click(ui.app.query(Card)[1])
        assert strip(ui).selected == strip(ui).node_ids[1]
        await ui.pilot.click(ui.app.query(Card)[2], times=2)
        await ui.until(lambda: not strip(ui).display, "adoption")
        assert ui.session.path()[-1].text == ANSWERS[2]


async def test_continuations_from_the_token_cursor_stream_side_by_side(screen):
    async with screen(*["a", "b"], prepare=rivers, size=(160, 48)) as ui:
        await ui.press("shift+tab", "X")
        assert ui.toasts == ["There is no token cursor: L sets it in an answer."]
        await ui.press("L", "L", "L", "X")
        await ui.shown("X… how many answers side by side?", "NAVIGATE X…")
        (kept,) = {ui.app.actions.tokens.cursor.token}
        answer = ui.session.path()[-1]
        await ui.press("2")
        await ui.shown("2 answers")
        first, second = ui.session.tree.siblings(answer.id)[1:]
        for one in (first, second):
            node = ui.session.view(one)
            assert (node.forked_from, node.fork_token) == (answer.id, kept)
            assert node.text
            assert answer.text.startswith(node.text)
        assert ui.app.actions.tokens.cursor is None
        await ui.answered()
        assert ui.session.view(second).text == f"{ui.session.view(first).text[:-1]}b"
