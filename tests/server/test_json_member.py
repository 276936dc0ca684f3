"""`StringMember`: the value of a member while its JSON arrives."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.wire.json_member import StringMember


def read(pieces, name="input"):
    member = StringMember(name)
    return "".join(map(member.feed, pieces)), member.found


def cuts(text, places):
    ends = sorted({min(one, len(text)) for one in places})
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


@given(st.text(), st.lists(st.integers(0, 300), max_size=8), st.booleans())
def test_the_value_is_that_of_the_whole_json(value, places, as_ascii):
    text = json.dumps({"input": value, "more": '"'}, ensure_ascii=as_ascii)
    expected = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert read(cuts(text, places)) == (expected, True)


@given(st.text(alphabet='{}"\\:inputdu08Ca \n'), st.lists(st.integers(0, 40), max_size=5))
def test_damaged_json_is_read_without_an_error_and_alike_in_pieces(text, places):
    assert read(cuts(text, places)) == read([text])


def test_a_character_is_told_as_soon_as_it_is_certain():
    member = StringMember("input")
    pieces = [
        '{ "inp',
        'ut" : "a',
        "b\\",
        "n\\u00",
        "e9\\ud83d",
        "\\ude00",
        'x"',
        '", "input": "y"}',
    ]
    assert [member.feed(one) for one in pieces] == ["", "a", "b", "\n", "é", "😀", "x", ""]


@pytest.mark.parametrize(
    "text", ['{"other": "x", "input": "y"}', "[1]", "plain", '{"input": 3}', ""]
)
def test_another_form_has_no_value(text):
    assert read([text]) == ("", False)
