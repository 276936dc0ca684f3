"""The branch tree on the screen, and the keys that move in it."""

import pytest

from app.tui.widgets.branches import BranchPane
from engine.conversations.tree import NodeKind, NodeStatus
from tests.tui.harness import converse


def forked(session, client):
    """Two questions, then another branch after the first answer: main ends at `four`, fork at `six`."""
    converse(session, client, ("one", "two"), ("three", "four"))
    session.branches.fork(session.path()[1].id)
    converse(session, client, ("five", "six"))


def regenerated(session, client):
    """One question with three answers; the last one is open."""
    converse(session, client, ("one", "first"))
    for answer in ("second", "third"):
        client.answers.appendleft(answer)
        session.branches.regenerate()
        client.finish()
        session.pump()


def node(session, text):
    return next(
        one
        for root in session.tree.children(None)
        for one in session.tree.subtree(root)
        if session.tree[one].text == text
    )


def texts(ui):
    return [message.source for message in ui.transcript.messages]


def pane(ui):
    return ui.app.query_one(BranchPane)


def under_cursor(ui):
    return ui.session.tree[pane(ui).tree_view.cursor].text


async def test_the_tree_appears_with_the_second_branch_and_the_breadcrumb_with_it(screen):
    def earlier(session, client):
        converse(session, client, ("one", "two"))

    async with screen("three", prepare=earlier) as ui:
        assert not pane(ui).display
        assert not ui.app.query_one("#crumbs").display
        await ui.press("shift+tab", "r")
        await ui.answered()
        await ui.shown("branches", "main › 2/2", "▸ ├ ≋ three", "  └ ≋ two", "◀ 2/2 ▶")
        await ui.press("u")
        await ui.shown("◀ 1/2 ▶")
        assert texts(ui) == ["one", "two"]


async def test_ctrl_t_goes_to_the_branches_then_the_list_then_the_prompt(screen):
    async with screen(prepare=forked) as ui:
        await ui.press("ctrl+t")
        assert pane(ui).tree_view.has_focus
        await ui.press("ctrl+t")
        assert ui.app.query_one("#chat-list").has_focus
        await ui.press("ctrl+t")
        assert ui.prompt.has_focus


async def test_enter_in_the_tree_opens_a_branch_and_u_returns(screen):
    async with screen(prepare=forked) as ui:
        await ui.press("ctrl+t")
        assert under_cursor(ui) == "six"
        await ui.press("j", "j")
        assert under_cursor(ui) == "four"
        assert texts(ui)[-1] == "six"  # nothing changes before enter
        await ui.press("enter")
        await ui.shown("main › 1/2")
        assert texts(ui) == ["one", "two", "three", "four"]
        await ui.press("u")
        assert texts(ui)[-1] == "six"


async def test_enter_on_an_inner_answer_continues_from_there(screen):
    async with screen("eight", prepare=forked) as ui:
        await ui.press("ctrl+t", "g", "j")
        assert under_cursor(ui) == "two"
        await ui.press("enter")
        assert ui.prompt.has_focus
        assert texts(ui) == ["one", "two"]
        await ui.ask("seven")
        await ui.answered()
        assert texts(ui) == ["one", "two", "seven", "eight"]
        await ui.shown("◀ 3/3 ▶")


async def test_keys_of_the_tree_move_its_cursor(screen):
    async with screen(prepare=forked) as ui:
        await ui.press("ctrl+t", "g")
        assert under_cursor(ui) == "one"
        await ui.press("G")
        assert under_cursor(ui) == "four"
        await ui.press("k")
        assert under_cursor(ui) == "three"
        await ui.press("l")
        assert under_cursor(ui) == "five"
        await ui.press("J")
        assert under_cursor(ui) == "three"
        await ui.press("K")
        assert under_cursor(ui) == "five"
        await ui.press("pagedown")
        assert under_cursor(ui) == "four"
        assert texts(ui)[-1] == "six"


async def test_folding_hides_what_is_below_and_hoisting_everything_else(screen):
    async with screen(prepare=forked) as ui:
        view = pane(ui).tree_view
        await ui.press("ctrl+t", "g", "j", "z")
        assert [row.folded for row in view.rows] == [0, 4]
        await ui.shown("+4")
        await ui.press("z")
        assert len(view.rows) == 6
        await ui.press("G", "k", "Z")
        assert [ui.session.tree[row.node_id].text for row in view.rows] == ["three", "four"]
        await ui.shown("Z shows all")
        await ui.press("Z")
        assert len(view.rows) == 6


async def test_h_and_l_go_through_the_siblings_and_the_marks_follow(screen):
    async with screen(prepare=regenerated) as ui:
        await ui.shown("◀ 3/3 ▶")
        await ui.press("shift+tab", "h")
        await ui.shown("◀ 2/3 ▶")
        assert texts(ui) == ["one", "second"]
        await ui.press("h", "h")  # the first one stays
        assert texts(ui) == ["one", "first"]
        await ui.press("l")
        assert texts(ui) == ["one", "second"]


async def test_a_click_on_the_arrow_goes_to_the_sibling(screen):
    async with screen(prepare=regenerated) as ui:
        head = ui.last.query_one(".message-head")
        column = str(head.content).index("◀")
        await ui.pilot.click(head, offset=(column, 0))
        await ui.shown("◀ 2/3 ▶")
        assert texts(ui) == ["one", "second"]


async def test_a_message_that_stays_mounted_shows_its_new_siblings(screen):
    async with screen(
        "six", prepare=lambda s, c: converse(s, c, ("one", "two"), ("three", "four"))
    ) as ui:
        await ui.press("shift+tab", "k", "k", "e")
        ui.prompt.text = "five"
        await ui.press("enter")
        await ui.answered()
        await ui.shown("◀ 2/2 ▶")
        await ui.press("shift+tab", "k", "k", "D")
        await ui.gone("◀")
        assert texts(ui) == ["one", "two", "three", "four"]


async def test_branch_points_are_the_messages_with_siblings(screen):
    async with screen(prepare=forked) as ui:
        await ui.press("shift+tab", "K")
        assert ui.transcript.selected.text == "five"
        await ui.press("g", "J")
        assert ui.transcript.selected.text == "five"
        await ui.press("h")
        assert texts(ui) == ["one", "two", "three", "four"]
        assert ui.transcript.selected.text == "three"


async def test_brackets_go_through_the_branches_and_the_backtick_back(screen):
    async with screen(prepare=forked) as ui:
        await ui.press("shift+tab", "left_square_bracket")
        assert texts(ui)[-1] == "four"
        await ui.press("right_square_bracket")
        assert texts(ui)[-1] == "six"
        await ui.press("right_square_bracket")
        assert texts(ui)[-1] == "four"
        await ui.press("grave_accent")
        assert texts(ui)[-1] == "six"
        await ui.press("grave_accent")
        assert texts(ui)[-1] == "four"


async def test_bookmarks_and_labels_are_listed_across_branches(screen):
    async with screen(prepare=forked) as ui:
        await ui.press("shift+tab", "B")
        assert "There are no bookmarks" in ui.toasts[-1]
        await ui.press("K", "b")
        await ui.shown("★")
        await ui.press("h", "m")
        await ui.type("idea")
        await ui.press("enter")
        await ui.shown("[idea]")
        await ui.press("right_square_bracket", "B")
        await ui.shown("Bookmarks and labels")
        await ui.press("enter")
        assert texts(ui) == ["one", "two", "three", "four"]
        assert ui.transcript.selected.text == "three"
        await ui.press("m")
        ui.app.screen.query_one("#ask-input").value = ""
        await ui.press("enter")
        await ui.gone("[idea]")
        await ui.press("J", "l", "b")
        await ui.until(lambda: not ui.session.tree[node(ui.session, "five")].rating)


async def test_two_escs_on_an_empty_prompt_open_the_tree_at_the_last_message(screen):
    async with screen(
        "new", prepare=lambda s, c: converse(s, c, ("one", "two"), ("three", "four"))
    ) as ui:
        await ui.press("escape", "escape")
        assert pane(ui).tree_view.has_focus
        assert under_cursor(ui) == "three"
        assert texts(ui)[-1] == "four"
        await ui.press("enter")
        assert ui.prompt.text == "three"
        await ui.shown("editing the message")
        await ui.press("escape")
        assert (ui.prompt.text, ui.prompt.editing) == ("", None)


async def test_two_slow_escs_open_nothing(screen):
    async with screen(prepare=forked) as ui:
        await ui.press("escape")
        ui.clock.now += 0.6
        await ui.press("escape")
        assert not pane(ui).tree_view.has_focus


async def test_fifty_escs_on_an_empty_prompt_change_nothing(screen):
    async with screen(prepare=forked) as ui:
        before = (ui.session.path(), ui.session.version, ui.session.tree.branches())
        await ui.press(*["escape"] * 50)
        assert (ui.session.path(), ui.session.version, ui.session.tree.branches()) == before
        assert ui.app.is_running
        assert ui.prompt.text == ""


async def test_on_a_narrow_screen_the_tree_lies_over_the_transcript(screen):
    async with screen(prepare=forked, size=(80, 24)) as ui:
        assert not ui.app.query_one("#left").display
        await ui.press("ctrl+t")
        await ui.shown("branches", "four")
        await ui.press("G", "enter")
        assert texts(ui)[-1] == "four"
        assert not ui.app.query_one("#left").display
        await ui.press("ctrl+t", "escape")
        assert not ui.app.query_one("#left").display


async def test_a_running_answer_of_another_branch_is_marked_and_can_be_stopped(screen):
    async with screen(["a ", "b ", "c "], prepare=forked) as ui:
        await ui.ask("seven")
        ui.client.step()
        ui.clock.now += 1
        await ui.shown("⋯ a")
        await ui.press("shift+tab", "left_square_bracket")
        assert texts(ui)[-1] == "four"
        assert not ui.session.answers.generating
        ui.client.step()
        ui.clock.now += 1
        await ui.shown("⋯ a b")
        await ui.press("ctrl+t", "G")
        assert pane(ui).tree_view.cursor in ui.session.answers.running
        await ui.press("s")
        ui.client.step()
        await ui.until(lambda: not ui.session.answers.running, "the stop")
        stopped = ui.session.tree[node(ui.session, "a b ")]
        assert stopped.status is NodeStatus.STOPPED


async def test_an_idle_tree_writes_nothing_and_asks_for_no_more_prices(screen):
    async with screen(prepare=forked) as ui:
        await ui.settled()
        asked = []
        price = ui.client.price
        ui.client.price = lambda ids: asked.append(ids) or price(ids)
        ticks = ui.app.frame_clock.ticks
        ui.app.draw_all()
        await ui.until(lambda: ui.app.frame_clock.ticks > ticks)
        await ui.settled()
        assert asked == []


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 48)])
async def test_hostile_text_does_not_reach_the_rows(screen, size):
    def earlier(session, client):
        converse(session, client, ("\x1b[2Jone", "two\x1b]52;c;eA==\x07[/]"))
        session.branches.label(session.path()[0].id, "\x1b[31mred")
        session.branches.rename_branch("\x1b[2Jname")
        client.answers.appendleft("three")
        session.branches.regenerate()
        client.finish()
        session.pump()

    async with screen(prepare=earlier, size=size) as ui:
        await ui.press("ctrl+t")
        await ui.shown("[red]", "two[/]")
        assert "\x1b" not in ui.text


async def test_the_kind_of_every_row_is_drawn(screen):
    def earlier(session, client):
        session.system_prompt = "Be brief."
        forked(session, client)

    async with screen(prepare=earlier) as ui:
        await ui.shown("§ Be brief.", "❯ one", "≋ two")
        kinds = [ui.session.tree[row.node_id].kind for row in pane(ui).tree_view.rows]
        assert kinds[0] is NodeKind.SYSTEM


async def test_a_tree_that_was_hidden_opens_with_the_cursor_on_the_open_path(screen):
    async with screen("new", prepare=forked, size=(80, 24)) as ui:
        await ui.press("ctrl+t", "G", "escape")
        assert not ui.app.query_one("#left").display
        await ui.press("ctrl+t")
        assert under_cursor(ui) == "six"


async def test_a_row_of_a_conversation_that_was_just_left_is_blank(screen):
    async with screen(prepare=forked) as ui:
        view = pane(ui).tree_view
        assert view.render_line(0).text.strip()
        ui.session.conversations.open_new()  # drawn before the next tick
        assert not view.render_line(0).text.strip()


async def test_the_end_of_a_long_open_branch_is_in_view(screen):
    def long(session, client):
        forked(session, client)
        converse(session, client, *((f"q{n}", f"a{n}") for n in range(30)))

    async with screen("the last one", prepare=long) as ui:
        await ui.shown("▸ │ ≋ a29")
        await ui.ask("more")
        await ui.answered()
        await ui.shown("▸ │ ≋ the last one")


async def test_of_five_hundred_branches_each_is_a_row_and_some_keys_away(screen):
    def many(session, client):
        converse(session, client, ("root", "start"))
        start = session.head
        for number in range(500):
            session.branches.edit(start, f"version {number}")

    async with screen(prepare=many) as ui:
        await ui.shown("501", "▸ ├ ≋ version 499")
        await ui.press("ctrl+t", "G")
        assert under_cursor(ui) == "version 498"
        await ui.press("enter")
        await ui.until(lambda: texts(ui)[-1] == "version 498", "the branch")
