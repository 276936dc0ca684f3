"""Answers as they arrive: Markdown, long fences, hostile text, what Markdown cannot show."""

from textual.widgets import Markdown

from app.tui.frame_clock import Governor
from app.tui.textual_workarounds.answer_markdown import AnswerMarkdown
from app.tui.textual_workarounds.plain_fence import FENCE_LIMIT
from engine.api.request import FinishReason
from engine.conversations.tree import NodeStatus

CODE = "".join(f"line_{number} = {number}\n" for number in range(FENCE_LIMIT // 8))


def markdown_source(ui):
    return ui.last.query_one(Markdown).source


async def test_markdown_is_formatted_while_it_streams(screen):
    async with screen(["# Rivers\n\n", "1. **Ganga**\n", "2. Godavari\n"]) as ui:
        await ui.ask("list rivers")
        ui.client.step(2)
        await ui.shown("1. Ganga")
        assert "**" not in ui.text
        await ui.answered()
        await ui.shown("2. Godavari")


async def test_a_fence_longer_than_the_limit_is_plain_until_it_closes(screen):
    pieces = ["Look:\n\n```python\n", CODE, "last = 1\n", "```\n", "After **it**."]
    async with screen(pieces) as ui:
        await ui.ask("long code")
        ui.client.step(3)
        await ui.until(lambda: len(ui.last.query(".message-tail")), "the plain tail")
        await ui.shown("last = 1")
        ui.client.step(1)
        await ui.until(lambda: not ui.last.query(".message-tail"), "the swap")
        await ui.until(lambda: markdown_source(ui) == "".join(pieces[:4]), "the text before it")
        await ui.answered()
        assert markdown_source(ui) == "".join(pieces)
        await ui.shown("After it.")


async def test_only_the_first_words_are_drawn_at_once_the_rest_waits_for_the_next_tick(screen):
    async with screen("one two three four five", "again") as ui:
        # A tick an hour: whatever is drawn from here on was drawn because it could not wait.
        ui.app.frame_clock.governor = Governor(full_hz=1 / 3600)
        await ui.ask("question")
        ui.client.step()
        await ui.shown("one")
        await ui.ask("queued")
        ticks = ui.app.frame_clock.ticks
        for _ in range(3):
            ui.client.step()
            await ui.pilot.pause(0.05)
        assert ui.app.frame_clock.ticks == ticks
        ui.client.finish()
        await ui.app.frame_clock.tick_once()
        ui.client.step()
        await ui.app.frame_clock.tick_once()
        await ui.shown("five", "again")


async def test_an_answer_that_ends_inside_a_fence_is_whole(screen):
    pieces = ["```\n", CODE, "the end"]
    async with screen(pieces) as ui:
        await ui.ask("code")
        await ui.answered()
        assert not ui.last.query(".message-tail")
        assert markdown_source(ui) == "".join(pieces)
        await ui.shown("the end")


async def test_two_fences_within_one_write_leave_nothing_behind(screen):
    pieces = ["```\n", CODE, "```\n\nand\n\n```\nsecond\n", "more\n```\nend"]
    async with screen(pieces) as ui:
        await ui.ask("code")
        for _ in pieces:
            ui.client.step()
            await ui.pilot.pause(0.1)
        await ui.answered()
        assert markdown_source(ui) == "".join(pieces)
        await ui.shown("second", "more", "end")


async def test_no_terminal_escape_reaches_the_screen(screen):
    async with screen() as ui:
        for hostile in (
            "a\x1b[2J\x1b[Hb",
            "a\x1b]52;c;aGk=\x07b",
            "a\x9b31mb",
            "a\x1bPq\x1b\\b",
            "[/] [bold]a[/bold] [@click=app.quit]b[/]",
            "`\x1b[31m` ```\x1b]0;x\x07",
            "a\u202eb",
        ):
            ui.client.answers.append(list(hostile))
            await ui.ask(hostile)
            ui.session.conversations.rename(ui.session.tree_id, hostile)
            await ui.answered()
            ui.app.notify_safely(hostile)
            await ui.pilot.pause()
            drawn = ui.text.replace("\n", "")
            assert not any(ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 for letter in drawn)
            assert "\u202e" not in drawn
            assert ui.session.path()[-1].text == hostile
            await ui.press("ctrl+n")


async def test_raw_html_is_shown_and_a_link_names_its_target(screen):
    text = "<think>hm</think> see [my bank](https://evil.example/x) or [this](javascript:alert)"
    async with screen(text) as ui:
        await ui.ask("link")
        await ui.answered()
        await ui.shown("<think>hm</think>", "my bank (https://evil.example/x)")


async def test_what_markdown_cannot_show_is_plain_text(screen, monkeypatch):
    async with screen(["fine ", "**trouble** ", "and on"]) as ui:
        await ui.ask("question")
        ui.client.step()
        await ui.shown("fine")

        def fails(self, text):
            raise RuntimeError("the parser gave up")

        monkeypatch.setattr(AnswerMarkdown, "grow", fails)
        monkeypatch.setattr(Markdown, "update", fails)
        await ui.answered()
        await ui.shown("fine **trouble** and on")
        assert ui.toasts == []


async def test_an_answer_that_fails_keeps_its_text_and_says_why(screen):
    async with screen(["one ", "two"]) as ui:
        await ui.ask("count")
        ui.client.step()
        ui.client.write("", finish=FinishReason.ERROR)
        ui.client.wake()
        await ui.shown("one", "✗ the step failed")
        assert ui.session.path()[-1].status is NodeStatus.ERROR


async def test_the_row_under_an_answer_wraps(screen):
    async with screen(["one ", "two"], size=(44, 20)) as ui:
        await ui.ask("count")
        ui.client.step()
        ui.client.write("", finish=FinishReason.ERROR)
        ui.client.wake()
        await ui.shown("✗ the step failed", "to first token")


async def test_before_the_first_token_the_screen_says_what_is_read(screen):
    async with screen("answer") as ui:
        await ui.ask("question")
        await ui.shown("⋯ reading", "tokens")
        await ui.answered()
        await ui.gone("⋯ reading")


async def test_a_tick_that_raises_is_reported_once_and_drawing_continues(screen, monkeypatch):
    async with screen("one two three") as ui:
        failures = iter([True, True])
        pump = ui.session.pump

        def failing():
            if next(failures, False):
                raise RuntimeError("no pump today")
            return pump()

        await ui.ask("count")
        monkeypatch.setattr(ui.session, "pump", failing)
        await ui.answered()
        await ui.shown("one two three")
        told = [toast for toast in ui.toasts if "no pump today" in toast]
        assert len(told) == 1
        ui.app.failures.first.clear()
