"""The heat map on the screen over the fake engine."""

from rich.segment import Segment

from app.tui.view.heat import BOUNDS
from app.tui.view.tints import Tint
from engine.api.request import FinishReason
from tests.tui.harness import converse
from tests.tui.test_token_cursor import cursor, under_cursor

TEXT = "abcdef"
BITS = (0.1, 0.7, 1.5, 3.0, 6.0, 9.0)
LN2 = 0.6931471805599453


def asked(session, client):
    client.logprobs = {
        client.tokenize(letter)[0]: -bits * LN2 for letter, bits in zip(TEXT, BITS, strict=True)
    }
    converse(session, client, ("First?", TEXT), ("Second?", "fade"))


def styles(message):
    """Text → style of the segments of a message's tokens."""
    strips = message.token_view.render_lines(message.token_view.size.region)
    return {
        segment.text: segment.style
        for strip in strips[1:]
        for segment in strip
        if isinstance(segment, Segment) and segment.text.strip()
    }


def test_each_example_has_a_step_of_its_own():
    assert [sum(bits >= bound for bound in BOUNDS) for bits in BITS] == [0, 1, 2, 3, 4, 5]


async def test_without_a_selection_all_answers_are_tinted(screen):
    async with screen(prepare=asked) as ui:
        await ui.press("shift+tab", "t")
        await ui.shown("perplexity 8.0", 'least likely "f" 0.2 % at 6')
        first, second = (ui.transcript.messages[at] for at in (1, 3))
        assert first.token_view.shown.tint is Tint.SURPRISAL
        assert second.token_view.shown.tint is Tint.SURPRISAL
        variables = ui.app.theme_variables
        grounds = [styles(first)[letter].bgcolor.name for letter in TEXT]
        assert grounds == [variables[f"heat-{step}"].lower() for step in range(6)]
        await ui.press("t")
        await ui.gone("perplexity")
        assert first.token_view.shown.tint is Tint.SOURCE
        await ui.press("t")
        await ui.until(lambda: first.token_view is None)


async def test_a_selected_answer_is_tinted_alone(screen):
    async with screen(prepare=asked) as ui:
        await ui.press("shift+tab", "g", "j", "t")
        await ui.shown("perplexity 8.0")
        assert ui.transcript.messages[3].token_view is None
        await ui.press("escape")
        assert ui.transcript.messages[1].token_view is not None


async def test_an_answer_that_ends_later_is_tinted_too(screen):
    async with screen(prepare=asked) as ui:
        await ui.press("shift+tab", "t")
        ui.client.answers.append("bead")
        await ui.ask("Third?")
        await ui.answered()
        await ui.until(lambda: ui.last.token_view is not None)


def drafted(session, client):
    session.messages.send("How?")
    client.write("abcd", drafted=(1, 2), finish=FinishReason.STOP, cached=4)
    session.pump()


async def test_tokens_are_tinted_by_their_source(screen):
    async with screen(prepare=drafted) as ui:
        await ui.press("shift+tab", "t", "t")
        await ui.shown("accepted draft  2", "computed  2", "prompt 4 cached")
        variables = ui.app.theme_variables
        draft, computed = (variables[f"source-{one}"].lower() for one in ("draft", "computed"))
        found = styles(ui.last)
        assert [found[one].bgcolor.name for one in "abcd"] == [computed, draft, draft, computed]
        await ui.press("H", "H")
        await ui.shown("token 3/4", "accepted draft")


async def test_without_colour_a_source_is_an_attribute(screen, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with screen(prepare=drafted) as ui:
        await ui.press("shift+tab", "t", "t")
        await ui.shown("accepted draft  2")
        found = styles(ui.last)
        assert [bool(found[one].underline) for one in "abcd"] == [False, True, True, False]


async def test_a_user_message_cannot_be_tinted(screen):
    async with screen(prepare=asked) as ui:
        await ui.press("shift+tab", "g", "t")
        await ui.until(lambda: ui.toasts)
        assert ui.toasts == ["Tokens are stored with generated answers only."]


async def test_without_colour_each_step_has_attributes_of_its_own(screen, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with screen(prepare=asked) as ui:
        await ui.press("shift+tab", "g", "j", "t")
        await ui.shown("perplexity")
        found = styles(ui.transcript.messages[1])
        shapes = [(s.dim, s.underline, s.bold, s.reverse) for s in map(found.get, TEXT)]
        assert len(set(shapes)) == 6
        await ui.press("L", "L", "L", "L", "L")
        on_cursor = styles(ui.transcript.messages[1])["e"]
        assert (on_cursor.reverse, on_cursor.underline) == (True, True)


async def test_braces_move_between_surprising_tokens(screen):
    async with screen(prepare=asked) as ui:
        await ui.press("shift+tab", "right_curly_bracket")
        assert under_cursor(ui) == "f"
        assert cursor(ui).token == 0
        await ui.press("right_curly_bracket")
        assert cursor(ui).token == 3
        await ui.press("right_curly_bracket")
        assert ui.toasts == ["No surprising token after this one."]
        await ui.press("left_curly_bracket")
        assert cursor(ui).token == 0


async def test_the_theme_may_change_under_the_heat_map(screen):
    async with screen(prepare=asked) as ui:
        await ui.press("shift+tab", "t")
        await ui.shown("perplexity")
        ui.app.actions.themes.use("dawn")
        await ui.pilot.pause()
        ground = styles(ui.transcript.messages[1])["f"].bgcolor.name
        assert ground == ui.app.theme_variables["heat-5"].lower()


async def test_a_message_that_is_being_removed_is_not_tinted(screen):
    async with screen(prepare=asked) as ui:
        await ui.last.remove_children()
        await ui.press("shift+tab", "t")
        await ui.shown("perplexity 8.0")
        first, second = (ui.transcript.messages[at] for at in (1, 3))
        assert first.token_view is not None
        assert second.token_view is None


async def test_messages_of_the_conversation_before_are_not_tinted(screen):
    async with screen(prepare=asked) as ui:
        await ui.press("shift+tab", "t")
        await ui.shown("perplexity 8.0")
        before = [one.node for one in ui.transcript.messages]
        ui.app.actions.tokens._answers.clear()  # as for an answer that has not been read yet
        ui.app.session.conversations.open_new()
        assert [one.node for one in ui.transcript.messages] == before
        ui.app.actions.tokens._sync()  # raises if it reads them from the new conversation
        await ui.gone("perplexity")
