import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.retrieval.answering.sentences import sentence_spans, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "Use e.g. this, i.e. Python 3.11. It works.",
            ["Use e.g. this, i.e. Python 3.11.", "It works."],
        ),
        ("See os.path.join. or not", ["See os.path.join. or not"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("Title\n\nText\ngoes on.", ["Title", "Text\ngoes on."]),
        ("Do:\n- one\n- two\n1. three", ["Do:", "- one", "- two", "1. three"]),
        ("東京は大きい。京都は古い。", ["東京は大きい。", "京都は古い。"]),
        ("यह एक है। वह दो है।", ["यह एक है।", "वह दो है।"]),
        ("J. R. Smith wrote it.", ["J. R. Smith wrote it."]),
        ("  \n ", []),
    ],
)
def test_splits_into_sentences(text: str, expected: list[str]):
    assert sentences(text) == expected


@given(text=st.text(alphabet="aB.!? \n-1。", max_size=60))
def test_spans_hold_everything_but_white_space_in_order(text: str):
    spans = list(sentence_spans(text))
    offsets = [offset for span in spans for offset in span]
    assert offsets == sorted(offsets)
    assert all(start < end <= len(text) for start, end in spans)
    covered = "".join(text[a:b] for a, b in spans)
    assert "".join(covered.split()) == "".join(text.split())
