"""Marks and the comparison pane: every key of them."""

import pytest

from app.tui.marks import MAX_MARKS, Marks
from app.tui.widgets.compare import ComparePane
from engine.api.errors import InvalidRequest
from tests.tui.harness import converse

ONE = "Rivers carry water.\n\nThey flow to the sea."
OTHER = "Rivers carry fresh water.\n\nThey flow to the lake."
LONG = "\n".join(f"line {number}" for number in range(200))


def two(session, client):
    converse(session, client, ("Tell me of rivers", ONE))
    client.answers.appendleft(OTHER)
    session.branches.regenerate()
    client.finish()
    session.pump()


def long(session, client):
    converse(session, client, ("Tell me of rivers", LONG))
    client.answers.appendleft(LONG.replace("line 3\n", "LINE 3\n").replace("line 150", "LINE 150"))
    session.branches.regenerate()
    client.finish()
    session.pump()


def pane(ui):
    return ui.app.query_one(ComparePane)


async def test_c_compares_an_answer_with_the_one_before_it_and_esc_closes_the_comparison(screen):
    async with screen(prepare=two, size=(120, 36)) as ui:
        await ui.press("shift+tab", "c")
        await ui.shown(
            "part at token 13", "difference 1 of 2", "1/2", "2/2", "ppl 1.65", "TTFT 500 ms"
        )
        assert pane(ui).has_focus
        row = next(row for row in ui.text.splitlines() if "They flow" in row)
        assert row.count("They flow to the") == 2
        await ui.press("escape")
        await ui.gone("part at")
        assert ui.app.focused.id == "messages"
        assert ui.app.layout.pane == "chat"


async def test_h_l_and_digits_select_a_column_and_enter_adopts_it(screen):
    async with screen(prepare=two) as ui:
        assert ui.session.path()[-1].text == OTHER
        await ui.press("shift+tab", "c")
        await ui.shown("part at")
        one, other = ui.session.tree.siblings(ui.session.head)
        for key, node in (
            ("l", other), ("l", other), ("h", one), ("h", one), ("right", other), ("left", one),
            ("2", other), ("1", one), ("4", one),
        ):  # fmt: skip
            await ui.press(key)
            assert pane(ui).selected == node
        assert ui.app.layout.pane == "compare"
        await ui.press("enter")
        await ui.gone("part at")
        assert ui.session.path()[-1].text == ONE
        assert ui.app.layout.pane == "chat"
        assert "the sea" in ui.text


async def test_all_columns_scroll_together_and_n_goes_to_the_next_difference_and_back(screen):
    async with screen(prepare=long, size=(120, 36)) as ui:
        await ui.press("shift+tab", "c")
        await ui.shown("difference 1 of 2", "row 1 of 200")
        await ui.press("j", "j", "k", "down", "up")
        await ui.shown("row 2 of 200")
        assert (
            next(row for row in ui.text.splitlines() if "┃   line 1 " in row).count("  line 1 ")
            == 2
        )
        await ui.press("pagedown")
        await ui.gone("┃   line 1 ")  # the branch tree shows it too
        await ui.press("pageup")
        await ui.shown("row 2 of 200")
        await ui.press("G")
        await ui.shown("line 199")
        await ui.press("g")
        await ui.shown("row 1 of 200")
        await ui.press("end", "home")
        await ui.shown("row 1 of 200")
        await ui.press("n")
        await ui.shown("difference 2 of 2", "▸ LINE 150")
        await ui.press("n")
        await ui.shown("difference 2 of 2")
        await ui.press("N")
        await ui.shown("difference 1 of 2", "▸ LINE 3")


async def test_a_comparison_follows_running_answers(screen):
    words = [f"word{number}\n\n" for number in range(60)]
    one, other = ["Same ", "start, ", *words, "end."], ["Same ", "start, ", "BUT ", "brief."]

    async with screen(one, other, prepare=two, size=(160, 30)) as ui:
        await ui.press("shift+tab", "x", "2")
        ui.client.step(2)
        await ui.press("space", "l", "space", "c")
        await ui.shown("the same text so far", "≋ running")
        ui.client.step(4)
        await ui.shown("part at word 3", "BUT", "word3")
        ui.client.finish()
        # The end was visible, so that it stays visible while the text grows.
        await ui.shown("end.", "part at token")
        await ui.gone("≋ running")
        await ui.press("g")
        await ui.shown("BUT brief.", "row 1 of")
        await ui.settled()


async def test_a_comparison_without_running_answers_is_not_read_again(screen, monkeypatch):
    async with screen("a b c", prepare=two) as ui:
        await ui.press("shift+tab", "c")
        await ui.shown("part at")
        before = pane(ui).columns
        monkeypatch.setattr("app.tui.widgets.compare.align_rows", None)
        monkeypatch.setattr("app.tui.comparison._column", None)
        ui.session.messages.send("And lakes?")
        ui.client.finish()
        await ui.until(lambda: not ui.session.answers.generating)
        assert pane(ui).columns is before


async def test_a_resize_wraps_the_columns_again(screen):
    async with screen(prepare=two) as ui:
        await ui.press("shift+tab", "c")
        await ui.shown("Rivers carry fresh water.")
        await ui.pilot.resize_terminal(60, 30)
        await ui.shown("part at token 13", "fresh")


async def test_space_marks_and_c_compares_the_marked(screen):
    def chat(session, client):
        two(session, client)
        converse(session, client, ("And lakes?", "Lakes are still."))

    async with screen(prepare=chat) as ui:
        await ui.press("shift+tab", "k", "k", "space", "g", "space")
        await ui.shown("◆ marked")
        assert len(ui.app.marks) == 2
        await ui.press("c")
        await ui.shown("part at word 1", "Tell me of rivers", "And lakes?")


async def test_branches_are_compared_from_where_they_part(screen):
    def chat(session, client):
        two(session, client)
        converse(session, client, ("And lakes?", "Lakes are still."))
        first = session.tree.siblings(session.path()[1].id)[0]
        session.branches.adopt(first)
        converse(session, client, ("And seas?", "Seas are salt."))

    async with screen(prepare=chat) as ui:
        other = next(leaf for leaf in ui.session.tree.leaves() if leaf != ui.session.head)
        ui.app.marks.toggle(other)
        await ui.press("shift+tab", "c")
        await ui.shown("And lakes?", "And seas?", "Lakes are still.", "part at word")


async def test_a_second_space_and_esc_remove_marks(screen):
    async with screen(prepare=two) as ui:
        await ui.press("shift+tab", "space", "space")
        assert ui.app.marks.ids == ()
        await ui.press("space")
        await ui.shown("◆ marked")
        await ui.press("escape")
        await ui.gone("◆ marked")


async def test_a_lone_answer_has_nothing_to_be_compared_with(screen):
    async with screen(prepare=lambda s, c: converse(s, c, ("Hello", "Hi."))) as ui:
        await ui.press("shift+tab", "c")
        assert ui.toasts[-1].startswith("Nothing to compare: mark messages with space")
        assert ui.app.layout.pane == "chat"


async def test_nothing_is_marked_or_compared_in_an_empty_conversation(screen):
    async with screen() as ui:
        for key in ("space", "c"):
            await ui.press("shift+tab", key)
            assert ui.toasts == ["The conversation is empty: send a message first."]
            ui.app.clear_notifications()


async def test_marks_of_another_conversation_do_not_count(screen):
    async with screen(prepare=two) as ui:
        await ui.press("shift+tab", "space", "ctrl+n")
        await ui.ask("Hello")
        await ui.press("shift+tab", "space")
        assert ui.app.marks.ids == (ui.session.head,)


async def test_cards_are_marked_and_compared(screen):
    async with screen(ONE, OTHER, prepare=two, size=(160, 48)) as ui:
        await ui.press("shift+tab", "x", "2")
        await ui.answered()
        await ui.press("space", "l", "space")
        await ui.shown("1 ▸ ◆ ● done", "2 ◆ ● done")
        await ui.press("c")
        await ui.shown("part at token 13", "3/4", "4/4")
        await ui.press("escape")
        await ui.shown("2 answers")
        assert ui.app.focused.id == "cards"


def test_at_most_four_are_marked_and_listeners_are_told():
    marks, told = Marks(), []
    marks.listen(lambda: told.append(marks.ids))
    for number in range(MAX_MARKS):
        assert marks.toggle(str(number))
    with pytest.raises(InvalidRequest):
        marks.toggle("5")
    assert not marks.toggle("0")
    assert "1" in marks
    marks.keep({"1"}.__contains__)
    marks.keep({"1"}.__contains__)
    marks.clear()
    marks.clear()
    assert told == [
        ("0",), ("0", "1"), ("0", "1", "2"), ("0", "1", "2", "3"), ("1", "2", "3"), ("1",), (),
    ]  # fmt: skip
