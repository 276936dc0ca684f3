import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.stop_scanner import StopScanner


def scan(pieces, stops, *, include_stop=False):
    scanner = StopScanner(stops, include_stop=include_stop)
    text = "".join(scanner.feed(piece) for piece in pieces)
    return text + ("" if scanner.stopped else scanner.flush()), scanner.stopped


@pytest.mark.parametrize(
    ("text", "stops", "found"),
    [
        ("abcd", ("x", "abcd", "bc"), "bc"),
        ("abcd", ("bc", "abc"), "abc"),
        ("abcd", ("x",), None),
        ("", ("x",), None),
    ],
)
def test_the_stop_string_that_was_found_is_known(text, stops, found):
    scanner = StopScanner(stops, include_stop=False)
    for character in text:
        scanner.feed(character)
    assert scanner.found == found


def cuts(text):
    """All ways to split a text into pieces."""
    for marks in itertools.product((False, True), repeat=len(text) - 1):
        pieces, begin = [], 0
        for place, mark in enumerate(marks, 1):
            if mark:
                pieces.append(text[begin:place])
                begin = place
        yield [*pieces, text[begin:]]


@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        ("hello", ("xyz",), ("hello", False)),
        ("abcde", ("cd",), ("ab", True)),
        ("aabaab", ("aab",), ("", True)),
        ("aaab", ("aab",), ("a", True)),
        ("abcd", ("abcd", "bc"), ("a", True)),  # the stop string that ends first
        ("abcd", ("bc", "abc"), ("", True)),  # both end here: the longest
        ("xab", ("abc",), ("xab", False)),
        ("ababab", ("abac",), ("ababab", False)),
    ],
)
def test_the_cut_does_not_depend_on_the_pieces(text, stops, expected):
    for pieces in cuts(text):
        assert scan(pieces, stops) == expected, pieces


def test_included_stop_strings_end_the_text():
    for pieces in cuts("abcde"):
        assert scan(pieces, ("cd",), include_stop=True) == ("abcd", True)


def test_no_text_that_may_become_a_stop_comes_out_early():
    scanner = StopScanner(("END",), include_stop=False)
    assert scanner.feed("the E") == "the "
    assert scanner.feed("N") == ""
    assert scanner.feed("E") == "EN"
    assert scanner.flush() == "E"


def test_no_text_is_returned_after_a_stop_string():
    scanner = StopScanner(("x",), include_stop=False)
    assert scanner.feed("axb") == "a"
    assert scanner.feed("more") == ""


def naive_cut(pieces, stops):
    """The oracle: after each character of the spelled text, look for every stop string in both texts."""
    visible = spelled = ""
    before = []  # of each spelled character: visible characters before it
    for text, is_visible in pieces:
        for character in text:
            before.append(len(visible))
            spelled += character
            if is_visible:
                visible += character
            starts = [before[-len(one)] for one in stops if spelled.endswith(one)]
            if is_visible:
                starts += [len(visible) - len(one) for one in stops if visible.endswith(one)]
            if starts:
                return visible[: min(starts)], True
    return visible, False


LETTERS = st.text("ab<", min_size=1, max_size=6)


@given(st.lists(st.tuples(LETTERS, st.booleans()), max_size=6), st.lists(LETTERS, max_size=4))
def test_stop_strings_are_found_in_the_visible_and_in_the_spelled_text(pieces, stops):
    scanner = StopScanner(stops, include_stop=False)
    text = ""
    for piece, visible in pieces:
        text += scanner.feed(piece) if visible else scanner.feed_hidden(piece)
    text += "" if scanner.stopped else scanner.flush()
    assert (text, scanner.stopped) == naive_cut(pieces, stops)


def test_long_stop_strings_that_begin_alike():
    stops = ["a" * length + "b" for length in range(1000, 936, -1)]
    scanner = StopScanner(stops, include_stop=False)
    assert scanner.feed("a" * 1100) == "a" * 100
    assert scanner.feed("b") == ""
    assert scanner.stopped
