"""Notifications at the end of long answers, while the terminal is not focused."""

import pytest

from app.tui.output.finish_notice import notification

TEXT = "The answer is complete, after 12 s."


@pytest.mark.parametrize(
    ("environ", "means", "begins"),
    [
        ({"TERM_PROGRAM": "WezTerm"}, "auto", "\x1b]9;"),
        ({"TERM": "xterm-kitty"}, "auto", "\x1b]9;"),
        ({"TERM": "foot"}, "auto", "\x1b]777;notify;Pravāha;"),
        ({"TERM": "xterm-256color"}, "auto", ""),
        ({"TERM_PROGRAM": "WezTerm", "TMUX": "1"}, "auto", ""),
        ({"TERM": "xterm-256color"}, "bell", "\a"),
        ({"TERM_PROGRAM": "WezTerm"}, "off", ""),
    ],
)
def test_each_terminal_gets_what_it_knows(environ, means, begins):
    sequence = notification(environ, means, TEXT)
    assert sequence.startswith(begins)
    assert (TEXT in sequence) == begins.startswith("\x1b")
    assert bool(sequence) == bool(begins)


async def ended(screen, *, seconds, focus):
    async with screen("some words", notify_by="bell") as ui:
        written = []
        ui.app._notice._write = written.append
        ui.app.app_focus = focus
        ui.app.session.messages.send("A question")
        ui.app.draw_all()
        await ui.pilot.pause()
        await ui.until(lambda: ui.app._notice._running is not None, "the answer")
        ui.clock.now += seconds
        await ui.answered()
        return written


@pytest.mark.parametrize(
    ("seconds", "focus", "expected"), [(11, False, ["\a"]), (9, False, []), (11, True, [])]
)
async def test_only_a_long_answer_that_nobody_watches_is_reported(screen, seconds, focus, expected):
    assert await ended(screen, seconds=seconds, focus=focus) == expected
