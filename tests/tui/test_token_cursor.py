"""The token cursor, alternatives and forks at a token, on the screen over the fake engine."""

import pytest

from app.tui.view.price import build_price
from engine.api.generation_defaults import SamplingChoice
from engine.api.request import FinishReason, SamplingParams
from tests.tui.harness import converse

RIVER = "The river flows."


def asked(*turns):
    return lambda session, client: converse(session, client, *(turns or (("How?", RIVER),)))


def asked_with_alternatives(session, client):
    session.sampling.default = SamplingChoice(SamplingParams(logprobs=5))
    converse(session, client, ("How?", RIVER))


def cursor(ui):
    return ui.app.actions.tokens.cursor


def under_cursor(ui):
    """The text of the tokens under the cursor."""
    answer, unit = cursor(ui)
    return answer.units[unit].text


def bar(ui):
    return "".join(span.text for line in ui.app.query_one("#token-bar").lines for span in line)


async def test_the_cursor_moves_by_tokens_and_the_bar_describes_the_token(screen):
    async with screen(prepare=asked()) as ui:
        await ui.press("shift+tab", "L")
        await ui.shown("token 1/17", '"T"', "60.7 %", "0.72 bits")
        assert cursor(ui).token == 0
        await ui.press("L", "shift+right", "H")
        await ui.shown("token 2/17", '"h"')
        await ui.press("shift+left", "H", "H")
        assert cursor(ui).token == 0
        # The row and the status bar name the price of a fork there, which the fake engine computes.
        price = build_price(ui.app.actions.tokens.fork_price)
        await ui.until(lambda: ui.text.count(f"f fork {price}  ") == 2)


async def test_the_bar_shows_whole_hints_on_a_narrow_screen(screen):
    async with screen(prepare=asked(), size=(110, 30)) as ui:
        await ui.press("shift+tab", "L")
        await ui.shown("token 1/17")
        width = ui.app.query_one("#token-bar").content_size.width
        assert len(bar(ui)) <= width < 80
        assert bar(ui).rstrip().endswith(("alternatives", "surprising"))


async def test_the_cursor_begins_at_the_end_when_it_goes_back(screen):
    async with screen(prepare=asked()) as ui:
        await ui.press("shift+tab", "H")
        assert under_cursor(ui) == "∎"
        await ui.press("H")
        assert under_cursor(ui) == "."


async def test_the_cursor_moves_by_words(screen):
    async with screen(prepare=asked()) as ui:
        await ui.press("shift+tab", "L", "ctrl+right")
        await ui.shown("token 4/17")
        await ui.press("ctrl+right")
        await ui.shown("token 10/17")
        await ui.press("ctrl+left")
        await ui.shown("token 4/17")


async def test_escape_drops_the_cursor_then_the_selection(screen):
    async with screen(prepare=asked(("How?", "The **river** flows."))) as ui:
        await ui.shown("The river flows.")
        await ui.press("shift+tab", "L")
        await ui.shown("**river**")
        await ui.press("escape")
        assert cursor(ui) is None
        await ui.shown("The river flows.")
        await ui.gone("token 1/")
        assert ui.transcript.selected is not None
        await ui.press("escape")
        assert ui.transcript.selected is None


async def test_selecting_another_message_drops_the_cursor(screen):
    async with screen(prepare=asked()) as ui:
        await ui.press("shift+tab", "L", "k")
        await ui.gone("token 1/")
        assert cursor(ui) is None


async def test_graphemes_of_several_tokens_are_one_step(screen):
    # The fake tokenizer has a token for each code point.
    async with screen(prepare=asked(("How?", "प्रवाह 🇮🇳"))) as ui:
        seen = []
        await ui.press("shift+tab", "L")
        while under_cursor(ui) != "∎":
            seen.append(under_cursor(ui))
            await ui.press("L")
        assert seen == ["प्र", "वा", "ह", " ", "🇮🇳"]
        await ui.press("H")
        await ui.shown("token 8-9/10")


async def test_fork_at_the_cursor_continues_the_tokens_before_it(screen):
    async with screen(prepare=asked()) as ui:
        await ui.press("shift+tab", "L", "ctrl+right")
        ui.client.answers.append(" boat sinks.")
        before = ui.session.path()[-1]
        await ui.press("f")
        await ui.answered()
        await ui.shown("The boat sinks.")
        answer = ui.session.path()[-1]
        assert (answer.text, answer.forked_from, answer.fork_token) == (
            "The boat sinks.", before.id, 3,
        )  # fmt: skip
        request = ui.client.requests[-1]
        assert request.continued_tokens == 3
        assert cursor(ui) is None
        assert "flows" not in ui.text


async def test_fork_without_a_cursor_begins_a_branch_at_the_message(screen):
    async with screen(prepare=asked()) as ui:
        await ui.press("shift+tab", "f")
        assert "fork" in ui.session.tree.branches()


async def test_an_alternative_is_forced(screen):
    async with screen(prepare=asked_with_alternatives) as ui:
        await ui.press("shift+tab", "L", "L", "full_stop")
        await ui.shown("Alternatives", '"h" ●', '"x"', "22.3 %")
        ui.client.answers.append("ylophone")
        await ui.press("k", "j", "j", "enter")
        await ui.answered()
        await ui.shown("Txylophone")
        assert ui.session.path()[-1].fork_token == 2


@pytest.mark.parametrize("key", ["escape", "full_stop"])
async def test_alternatives_close_without_a_fork(screen, key):
    async with screen(prepare=asked_with_alternatives) as ui:
        await ui.press("shift+tab", "L", "full_stop")
        await ui.shown("Alternatives")
        await ui.press(key)
        await ui.gone("Alternatives")
        assert len(ui.client.requests) == 1
        assert cursor(ui) is not None


async def test_alternatives_that_are_not_stored_are_computed(screen):
    async with screen(prepare=asked()) as ui:
        ui.client.answers.append("h")
        await ui.press("shift+tab", "L", "L", "full_stop")
        await ui.shown("Alternatives", "computing")
        request = ui.client.requests[-1]
        assert (request.sampling.max_tokens, request.sampling.logprobs) == (1, 10)
        assert request.continued_tokens == 1
        ui.client.finish()
        await ui.shown('"h" ●', '"x"')
        await ui.press("escape", "full_stop")
        await ui.shown('"h" ●')
        assert ui.client.requests[-1] is request


async def test_alternatives_that_arrive_after_the_box_was_closed_are_kept(screen):
    async with screen(prepare=asked()) as ui:
        ui.client.answers.append("T")
        await ui.press("shift+tab", "full_stop", "escape")
        ui.client.finish()
        await ui.settled()
        await ui.press("full_stop")
        await ui.shown('"T" ●')
        assert len(ui.client.requests) == 2


async def test_a_failed_computation_closes_the_box_and_says_why(screen):
    async with screen(prepare=asked()) as ui:
        await ui.press("shift+tab", "full_stop")
        await ui.shown("computing")
        ui.client.write("", finish=FinishReason.ERROR)
        ui.clock.now += 1
        ui.client.wake()
        await ui.until(lambda: ui.toasts)
        assert ui.toasts == ["No alternatives: the step failed"]
        assert len(ui.app.screen_stack) == 1


async def test_a_running_answer_has_no_cursor(screen):
    async with screen("one two three") as ui:
        await ui.ask("Count")
        await ui.shown("Count")
        await ui.press("shift+tab", "L")
        await ui.until(lambda: ui.toasts)
        assert ui.toasts == ["The answer is still being generated: stop it first."]


async def test_keys_without_an_answer_say_so(screen):
    async with screen() as ui:
        await ui.press("shift+tab")
        for key in ("H", "L", "full_stop", "right_curly_bracket", "ctrl+left"):
            await ui.press(key)
            await ui.until(lambda: ui.toasts, key)
            assert ui.toasts[0].startswith("There is no ")
            ui.app.clear_notifications()


async def test_a_click_puts_the_cursor_on_a_token(screen):
    async with screen(prepare=asked()) as ui:
        await ui.press("shift+tab", "L")
        await ui.settled()
        view = ui.last.token_view
        await ui.pilot.click(view, offset=(2 + 4, 1))
        await ui.shown("token 5/17")
        assert under_cursor(ui) == "r"


async def test_the_token_under_the_pointer_is_explained(screen):
    async with screen(prepare=asked()) as ui:
        await ui.press("shift+tab", "L")
        await ui.settled()
        view = ui.last.token_view
        await ui.pilot.hover(view, offset=(2 + 4, 1))
        assert view.tooltip.plain.split()[:3] == ["token", "5/17", '"r"']
        assert "bits" in view.tooltip.plain
        await ui.pilot.hover(view, offset=(2 + 4, 0))
        assert view.tooltip is None
        assert ui.app.actions.tokens.cursor.unit != 4


async def test_the_row_of_the_cursor_is_scrolled_into_view(screen):
    text = "\n".join(f"line {number}" for number in range(100))
    async with screen(prepare=asked(("How?", text))) as ui:
        await ui.press("shift+tab", "L")
        await ui.shown("line 0⏎")
        await ui.press("escape", "H")
        await ui.shown("line 99")


async def test_hostile_tokens_are_marked(screen):
    async with screen(prepare=asked(("How?", "\x1b]52;c;evil\x07 ok"))) as ui:
        await ui.press("shift+tab", "L")
        await ui.shown("␛]52;c;evil␇ ok")
