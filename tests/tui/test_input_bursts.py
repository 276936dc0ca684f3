"""Pasted text without brackets: what breaks a line, and what sends it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.tui.input_bursts import BURST_S, MIN_TEXT, InputBursts
from tests.tui.harness import Clock

FAST, SLOW = BURST_S / 4, BURST_S * 4


def read(*reads, gap):
    """What becomes of several reads, `gap` seconds apart, and of the time after them."""
    clock = Clock()
    bursts = InputBursts(clock)
    found = []
    for text in reads:
        found += bursts.feed(text)
        clock.now += gap
        found += bursts.tick()
    clock.now += 2 * BURST_S
    return [*found, *bursts.tick()]


def enters(pieces):
    """Enters and other typed line breaks: what would send."""
    return "".join(one.text for one in pieces if not one.pasted).count("\r")


def whole(pieces):
    return "".join(one.text for one in pieces)


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_a_line_break_in_a_burst_is_pasted(end):
    pieces = read(f"first{end}second{end}", gap=SLOW)
    assert [one.pasted for one in pieces] == [True]
    assert whole(pieces) == f"first{end}second{end}"


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_a_burst_may_come_letter_by_letter(end):
    text = f"one{end}two{end}"
    pieces = read(*text, gap=FAST)
    assert enters(pieces) == 0
    assert [line.strip() for line in whole(pieces).splitlines()] == ["one", "two"]


def test_an_enter_after_a_pause_is_passed_on_at_once():
    clock = Clock()
    bursts = InputBursts(clock)
    assert bursts.feed("a") == [("a", False)]
    clock.now += SLOW
    assert bursts.feed("\r") == [("\r", False)]
    assert bursts.waits is None


def test_a_command_of_one_line_is_sent_when_the_burst_is_over():
    clock = Clock()
    bursts = InputBursts(clock)
    assert bursts.feed("/help\r") == [("/help", False)]
    assert bursts.waits == pytest.approx(BURST_S)
    assert bursts.tick() == []
    clock.now += 2 * BURST_S
    assert bursts.tick() == [("\r", False)]


def test_an_enter_that_is_held_down_stays_an_enter():
    assert enters(read("\r", "\r\r", "\r", gap=FAST)) == 4


def test_another_key_ends_the_burst():
    bursts = InputBursts(Clock())
    bursts.feed("word\r")
    assert bursts.end() == [("\r", False)]
    assert bursts.feed("x") == [("x", False)]


@pytest.mark.parametrize(
    ("text", "pasted"),
    [
        ("iremember", False),
        ("j" * 40, False),
        (" " * 40, False),
        ("/import", False),
        ("@sources\t", False),
        ("a\tb", True),
        ("does a question? go /here", True),
        ("x " * MIN_TEXT, True),
    ],
)
def test_a_line_is_text_if_nobody_types_it_at_once(text, pasted):
    assert read(text, gap=SLOW) == [(text, pasted)]


@example(["a\r", "\n", "\n"], True)
@example(["a\r\n\n", "\n", "b"], True)
@example(["a\rb\r\n", "\n", "\n\n"], True)
@given(st.lists(st.text(st.sampled_from("a b\t\r\n"), min_size=1), max_size=8), st.booleans())
def test_nothing_is_lost(reads, fast):
    pieces = read(*reads, gap=FAST if fast else SLOW)
    # Each piece is read alone: a CR at the end of one and an LF at the begin of the next are two line breaks.
    found = "".join(one.text.replace("\r\n", "\r").replace("\n", "\r") for one in pieces)
    text = "".join(reads)
    assert found.replace("\r", "") == text.replace("\r", "").replace("\n", "")
    assert found.count("\r") <= text.count("\r") + text.count("\n")
    assert found.count("\r") >= text.replace("\r\n", "\n").count("\n")


@given(st.lists(st.text("ab", min_size=1, max_size=9), min_size=2, max_size=6), st.integers(1, 40))
def test_no_part_of_a_paste_is_sent_however_it_is_split(lines, size):
    text = "\r".join(lines)
    reads = [text[at : at + size] for at in range(0, len(text), size)]
    assert enters(read(*reads, gap=FAST)) == 0
