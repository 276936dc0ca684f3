"""What bytes of a terminal become: pasted text is one event, whatever it contains."""

import pytest
from textual import events

from app.tui.input_bursts import BURST_S
from app.tui.textual_workarounds.terminal_parser import PASTE_TIMEOUT_S, TerminalParser
from tests.tui.harness import Clock

START, END = "\x1b[200~", "\x1b[201~"


def parse(*reads, parser=None):
    parser = parser or TerminalParser()
    return [event for read in reads for event in parser.feed(read)]


def keys(found):
    return [event.key for event in found if isinstance(event, events.Key)]


def pastes(found):
    return [event.text for event in found if isinstance(event, events.Paste)]


@pytest.mark.parametrize(
    ("pasted", "text"),
    [
        ("\x1b[31mred\x1b[0m and\x1b[1;2m dim", "red and dim"),
        ("quit\x1b\x11", "quit"),
        ("\x1b[A\x1b[B\x1b[15~", ""),
        ("nul\x00 c1\x9b31m\x84 del\x7f", "nul c1 del"),
        ("one\rtwo\r\nthree\tfour", "one\ntwo\nthree\tfour"),
        ("\x1b]52;c;aGk=\x07title", "title"),
        ("a\x1b", "a"),
        ("\x1b[200~twice", "twice"),
        ("", ""),
    ],
)
def test_escape_sequences_in_a_paste_are_removed_and_never_keys(pasted, text):
    found = parse(START + pasted + END + "x")
    assert (pastes(found), keys(found)) == ([text], ["x"])


def test_a_paste_may_be_split_at_any_place():
    whole = "i" + START + "a\x1b[1mb\rc" + END + "j" + START + "d" + END
    for size in range(1, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        found = parse(*pieces)
        assert (pastes(found), keys(found)) == (["ab\nc", "d"], ["i", "j"])


def test_a_paste_without_an_end_ends_when_nothing_more_comes():
    clock = Clock()
    parser = TerminalParser(clock=clock)
    found = parse(START + "lost\x1b[3", parser=parser)
    clock.now += PASTE_TIMEOUT_S - 0.1
    found += parse("1m end", parser=parser)
    clock.now += PASTE_TIMEOUT_S - 0.1
    found += parser.tick()
    assert found == []
    clock.now += 0.1
    found += parser.tick()
    found += parse("\x11", parser=parser)
    assert (pastes(found), keys(found)) == (["lost end"], ["ctrl+q"])


def test_a_paste_of_a_megabyte_is_one_event():
    text = "0123456789abcde\n" * 65536
    data = START + text + END
    found = parse(*(data[at : at + 4096] for at in range(0, len(data), 4096)))
    assert pastes(found) == [text]
    assert keys(found) == []


def test_alt_enter_is_not_enter():
    assert keys(parse("\x1b\r")) == ["alt+enter"]
    assert keys(parse("\x1b\n")) == ["alt+enter"]
    assert keys(parse("\r")) == ["enter"]


@pytest.mark.parametrize("sequence", ["\x1b[27;2;13~", "\x1b[13;2u"])
def test_both_forms_of_shift_enter_have_one_name(sequence):
    assert keys(parse(sequence)) == ["shift+enter"]


def test_a_key_code_that_is_no_character_is_ignored():
    assert keys(parse("a\x1b[99999999999ub")) == ["a", "b"]


def test_lines_pasted_without_brackets_are_one_paste():
    found = parse("def f():\r\n\treturn 1\r\nquit?")
    assert (pastes(found), keys(found)) == (["def f():\n\treturn 1\nquit?"], [])


def test_an_enter_in_a_burst_waits_for_what_follows():
    clock = Clock()
    parser = TerminalParser(clock=clock)
    found = parse("o", "k", "\r", parser=parser)
    assert keys(found) == ["o", "k"]
    assert parser.waits == pytest.approx(BURST_S)
    clock.now += 2 * BURST_S
    assert keys(parser.tick()) == ["enter"]
    assert parser.waits is None


def test_control_keys_and_sequences_stay_keys_in_their_order():
    assert keys(parse("\x0eab\r\x1b[A")) == ["ctrl+n", "a", "b", "enter", "up"]
    assert keys(parse("a\r\x7f")) == ["a", "enter", "backspace"]
    assert keys(parse("a\r\x1b", "[B")) == ["a", "enter", "down"]


def test_a_mouse_that_moves_does_not_end_a_burst():
    found = parse("one\r", "\x1b[<35;10;10M", "two")
    assert (pastes(found), keys(found)) == (["\ntwo"], ["o", "n", "e"])
