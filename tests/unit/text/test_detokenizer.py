import itertools

import pytest

from engine.text.detokenizer import Detokenizer, StopScanner
from tests.fakes.toy_tokenizer import EOS, ToyTokenizer


def scan(pieces, stops, *, include_stop=False):
    scanner = StopScanner(stops, include_stop=include_stop)
    text = "".join(scanner.feed(piece) for piece in pieces)
    return text + ("" if scanner.stopped else scanner.flush()), scanner.stopped


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


def test_a_detokenizer_stops_at_a_stop_token():
    tokenizer = ToyTokenizer()
    detokenizer = Detokenizer(tokenizer.incremental_detokenizer(), stop_ids=frozenset({EOS}))
    assert detokenizer.feed([*tokenizer.encode("ab"), EOS]) == "ab"
    assert detokenizer.flush() == ""


def test_a_detokenizer_flushes_an_incomplete_character():
    tokenizer = ToyTokenizer()
    detokenizer = Detokenizer(tokenizer.incremental_detokenizer(), stop_ids=frozenset())
    assert detokenizer.feed(tokenizer.encode("aé")[:2]) == "a"
    assert detokenizer.flush() == "\ufffd"
