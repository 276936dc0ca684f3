"""Keys that change the conversation tree, and what the status bar says before and after."""

from concurrent.futures import Future

from app.tui.keys import ALL_KEYS
from engine.api.fork_price import ForkPrice
from engine.conversations.tree import NodeKind, NodeStatus
from tests.tui.harness import converse
from tests.tui.test_branch_tree import forked, texts


def two_turns(session, client):
    converse(session, client, ("one", "two"), ("three", "four"))


async def test_f_after_an_answer_begins_a_branch_and_focuses_the_prompt(screen):
    async with screen("six", prepare=two_turns) as ui:
        await ui.press("shift+tab", "k", "k", "k", "f")
        assert texts(ui) == ["one", "two"]
        assert ui.prompt.has_focus
        assert "Branch fork begins here" in ui.toasts[-1]
        await ui.ask("five")
        await ui.answered()
        assert texts(ui) == ["one", "two", "five", "six"]
        assert set(ui.session.tree.branches()) == {"main", "fork"}


async def test_f_after_a_message_answers_it_and_reports_the_cost(screen):
    async with screen("other", prepare=two_turns) as ui:
        await ui.press("shift+tab", "k", "k", "f")
        await ui.answered()
        assert texts(ui) == ["one", "two", "three", "other"]
        assert "Fork: 48 of 48 prompt tokens computed, 0 from the cache." in ui.toasts


async def test_the_cost_of_a_fork_is_reported_with_the_first_answer(screen):
    async with screen("six", prepare=two_turns) as ui:
        await ui.press("shift+tab", "k", "k", "k", "f")
        await ui.ask("five")
        await ui.answered()
        assert any(toast.startswith("Fork: ") for toast in ui.toasts)


async def test_e_edits_a_message_and_enter_answers_the_new_one(screen):
    async with screen("answer", prepare=two_turns) as ui:
        await ui.type("a draft")
        await ui.press("shift+tab", "k", "k", "e")
        assert ui.prompt.text == "three"
        await ui.shown("editing the message", "esc leaves")
        ui.prompt.text = "three!"
        await ui.press("enter")
        await ui.answered()
        assert texts(ui) == ["one", "two", "three!", "answer"]
        assert ui.prompt.text == "a draft"
        await ui.shown("◀ 2/2 ▶")


async def test_e_edits_an_answer_without_generating(screen):
    async with screen(prepare=two_turns) as ui:
        await ui.press("shift+tab", "k", "e")
        await ui.shown("editing the answer")
        ui.prompt.text = "/four"
        await ui.press("enter")
        assert texts(ui) == ["one", "two", "three", "/four"]
        assert not ui.session.answers.generating


async def test_esc_leaves_the_editing_and_an_unchanged_text_is_not_sent(screen):
    async with screen(prepare=two_turns) as ui:
        version = ui.session.version
        await ui.press("shift+tab", "k", "k", "e", "enter")
        assert "unchanged" in ui.toasts[-1]
        assert ui.prompt.editing is not None
        await ui.press("escape", "escape")
        assert (ui.prompt.editing, ui.prompt.text) == (None, "")
        assert ui.session.version == version


async def test_another_conversation_leaves_the_editing(screen):
    async with screen(prepare=two_turns) as ui:
        await ui.press("shift+tab", "k", "e", "ctrl+n")
        assert (ui.prompt.editing, ui.prompt.text) == (None, "")


async def test_an_edited_message_is_neither_a_draft_nor_a_command(screen):
    async with screen(prepare=two_turns) as ui:
        await ui.type("a draft")
        first = ui.session.tree_id
        await ui.press("shift+tab", "k", "e")
        ui.prompt.text = "/he"
        await ui.pilot.pause()
        assert not ui.app.query_one("#completions").display
        await ui.press("ctrl+n")
        assert (ui.prompt.editing, ui.prompt.text) == (None, "")
        await ui.app.actions.conversations.open(first)
        await ui.pilot.pause()
        assert ui.prompt.text == "a draft"


async def test_r_regenerates_the_selected_answer(screen):
    async with screen("again", prepare=two_turns) as ui:
        await ui.press("shift+tab", "g", "j", "r")
        await ui.answered()
        assert texts(ui) == ["one", "again"]
        await ui.shown("◀ 2/2 ▶")


async def test_an_arrow_of_a_message_opens_its_sibling_and_not_that_of_the_selected_one(screen):
    async with screen(prepare=forked) as ui:
        await ui.press("shift+tab", "g")  # the first message, which has no sibling
        five = ui.session.path()[2]
        await ui.app.run_action(f"app.perform_later('go','sibling',-1,{five.id!r})")
        await ui.until(lambda: texts(ui) == ["one", "two", "three", "four"], "the sibling")


async def test_big_r_asks_for_a_temperature(screen):
    async with screen("again", prepare=two_turns) as ui:
        await ui.press("shift+tab", "R")
        await ui.shown("Regenerate with temperature")
        ui.app.screen.query_one("#ask-input").value = "hot"
        await ui.press("enter")
        assert ui.toasts[-1] == "A temperature is a number from 0 to 2."
        await ui.press("R")
        ui.app.screen.query_one("#ask-input").value = "1.5"
        await ui.press("enter")
        assert ui.client.requests[-1].sampling.temperature == 1.5
        assert ui.session.sampling.current.params.temperature != 1.5
        await ui.answered()
        assert texts(ui)[-1] == "again"


async def test_d_prunes_and_u_restores(screen):
    async with screen(prepare=forked) as ui:
        await ui.press("shift+tab", "K", "D")
        assert ui.toasts[-1] == "2 messages pruned; u restores."
        assert texts(ui) == ["one", "two", "three", "four"]
        await ui.gone("◀")
        await ui.press("u")
        assert texts(ui) == ["one", "two", "five", "six"]
        await ui.shown("◀ 2/2 ▶")
        await ui.press("U")
        assert texts(ui)[-1] == "four"


async def test_d_asks_again_if_several_branches_end_below_and_esc_declines(screen):
    async with screen("x", prepare=forked) as ui:
        await ui.press("shift+tab", "g", "j", "D")
        assert ui.toasts[-1] == "2 branches would go: main, fork. D again prunes them."
        assert len(ui.session.tree) == 6
        await ui.press("escape", "g", "j", "D")
        assert len(ui.session.tree) == 6
        await ui.press("D")
        assert texts(ui) == ["one"]


async def test_p_makes_a_branch_the_main_one(screen):
    async with screen(prepare=forked) as ui:
        await ui.press("shift+tab", "P")
        branches = ui.session.tree.branches()
        assert ui.session.tree[branches["main"]].text == "six"
        await ui.press("u")
        assert ui.session.tree[ui.session.tree.branches()["main"]].text == "four"


def answered(price):
    future = Future()
    future.set_result(price)
    return future


async def test_the_price_is_in_the_status_bar_before_the_key(screen):
    def earlier(session, client):
        two_turns(session, client)
        client.price = lambda ids: answered(
            ForkPrice(1812, 1, 0.412) if len(ids) > 50 else ForkPrice(1, 0, 0.001)
        )

    async with screen(prepare=earlier, size=(140, 40)) as ui:
        await ui.press("shift+tab", "k")
        await ui.shown("f fork 1 812 tok+1 blk ≈ 412 ms", "r again 1 tok")
        await ui.press("g")
        await ui.shown("f fork 1 tok  f1 keys  r again 1 tok")


async def test_the_hints_follow_the_focused_pane(screen):
    async with screen(prepare=forked, size=(160, 45)) as ui:
        for keys, hints in (
            ((), "enter send"),
            (("shift+tab",), "i type"),
            (("k",), "f fork"),
            (("escape", "i", "ctrl+t"), "enter open  f1 keys  f fork"),
            (("ctrl+t",), "enter open  f1 keys  / filter  del archive"),
            (("f3",), "enter owner"),
            (("f5",), "f2 chat"),
        ):
            await ui.press(*keys)
            await ui.shown(hints)


async def test_keys_without_effect_in_an_empty_conversation_say_why(screen):
    async with screen() as ui:
        await ui.press("shift+tab")
        await ui.shown("NAVIGATE", "i type  f1 keys  ctrl+p commands")
        disabled = [key for key in ALL_KEYS if key.id in ui.app.availability.reasons()]
        assert {"f", "r", "x", "D", "space", "s", "j", "t", "slash", "M"} <= {
            key.keys for key in disabled
        }
        for key in disabled:
            await ui.press(key.keys.split(",")[0])
            assert ui.toasts, key.id
            assert ui.toasts[-1].endswith("."), key.id
            ui.app.clear_notifications()
        assert len(ui.app.screen_stack) == 1
        assert ui.session.path() == []
        for key, said in (("u", "Nothing to undo."), ("U", "Nothing to redo.")):
            await ui.press(key)
            assert ui.toasts[-1] == said
        await ui.press("enter")
        assert ui.prompt.has_focus


async def test_keys_that_need_a_finished_answer_say_so_while_it_runs(screen):
    async with screen("a b c", prepare=two_turns) as ui:
        await ui.ask("five")
        ui.client.step()
        await ui.press("shift+tab")
        for key in ("fork", "edit", "regen", "regen.params", "tok.next", "alternatives"):
            assert ui.app.availability.reasons()[key] == "the answer is being generated"
        for key in ("f", "e", "r", "R", "L", "full_stop"):
            await ui.press(key)
            assert ui.toasts[-1].endswith("stop it first.")
            ui.app.clear_notifications()
        for key in "JK":
            await ui.press(key)
            assert "has siblings" in ui.toasts[-1]
        await ui.answered()
        await ui.press("s")
        assert ui.toasts[-1] == "No answer is running on the open branch."


async def test_other_branches_go_on_while_one_is_read(screen):
    async with screen("a b c d", prepare=two_turns) as ui:
        await ui.press("shift+tab", "r")
        ui.client.step()
        await ui.press("h")
        assert texts(ui)[-1] == "four"
        await ui.answered()
        await ui.until(lambda: not ui.session.answers.running)
        await ui.press("l")
        answer = ui.session.path()[-1]
        assert (answer.kind, answer.status, answer.text) == (
            NodeKind.ASSISTANT, NodeStatus.DONE, "a b c d",
        )  # fmt: skip
        assert texts(ui)[-1] == "a b c d"
