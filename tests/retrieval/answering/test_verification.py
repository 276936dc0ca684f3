import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.retrieval.answering.numbered_passage import number_passages
from engine.retrieval.answering.support import SupportJudge
from engine.retrieval.answering.verification import VerifyingStream, verify
from tests.retrieval.answering.passages import embed, passage

PORT = passage("The server listens on port 8000 by default. It logs to standard error.", start=100)
QUEUE = passage("A queue blocks when it is full.\nGetting an item never blocks.", file="/docs/b.md")
SOURCES = number_passages([PORT, QUEUE])


def test_a_supported_citation_stays():
    checked = verify("The server listens on port 8000 [1].", SOURCES, embed)
    assert checked.text == "The server listens on port 8000 [1]."
    assert [one.n for one in checked.citations] == [1]
    assert checked.dropped == ()
    assert checked.is_supported


def test_a_quote_is_the_supporting_sentence_with_its_bytes():
    (citation,) = verify("The server listens on port 8000 [1].", SOURCES, embed).citations
    (quote,) = citation.quotes
    assert quote.text == "The server listens on port 8000 by default."
    assert (quote.start, quote.end) == (100, 143)


def test_bytes_of_a_quote_count_bytes_and_not_characters():
    source = passage("Grüße. The café opens at nine in the morning.", start=10)
    (citation,) = verify("The café opens at nine.", number_passages([source]), embed).citations
    quote = citation.quotes[0]
    assert source.text.encode()[quote.start - 10 : quote.end - 10].decode() == quote.text


def test_a_quote_of_a_file_in_another_encoding_has_no_bytes():
    source = passage("Grüße. The café opens at nine in the morning.", end=46)  # latin-1
    (citation,) = verify("The café opens at nine.", number_passages([source]), embed).citations
    assert citation.quotes[0].start is None


@pytest.mark.parametrize(
    "sentence",
    [
        "The server listens on port 9000 [1].",  # another number
        "The server does not listen on port 8000 [1].",  # the opposite
        "The server listens on port 8000 [2].",  # another passage
        "Bread is baked from flour and water [1].",
        "The server calls `listen_tcp` on port 8000 by default [1].",  # a name that is not there
    ],
)
def test_a_citation_without_support_is_dropped_visibly(sentence: str):
    checked = verify(sentence, SOURCES, embed)
    n = int(sentence[-3])
    assert f"[{n}]" not in checked.text
    assert "[unsupported]" in checked.text
    assert [(one.n, one.exists) for one in checked.dropped] == [(n, True)]


@pytest.mark.parametrize("marker", ["[7]", "[0]", "[3]", "[999999999]", "[７]"])
def test_a_citation_that_does_not_exist_is_dropped(marker: str):
    checked = verify(f"A queue blocks when it is full {marker}.", SOURCES, embed)
    assert checked.text == "A queue blocks when it is full [unsupported]. [2]"
    assert [one.exists for one in checked.dropped] == [False]


def test_a_sentence_without_a_citation_gets_the_one_that_supports_it():
    text = "A queue blocks when it is full. Bread is baked from flour."
    assert verify(text, SOURCES, embed).text == (
        "A queue blocks when it is full. [2] Bread is baked from flour."
    )


def test_a_citation_behind_the_full_stop_belongs_to_the_sentence_before():
    text = "The server listens on port 8000. [1] A queue blocks when it is full. [2]"
    assert verify(text, SOURCES, embed).text == text


def test_a_repeated_sentence_is_left_out():
    text = "A queue blocks when it is full. " * 3
    stream = VerifyingStream(SupportJudge(SOURCES, embed))
    shown = stream.feed(text) + stream.finish()
    assert shown.strip() == "A queue blocks when it is full. [2]"
    assert stream.ended


def test_one_paragraph_ends_behind_its_first_checkable_sentence():
    text = "The answer is:\n\nA queue blocks when it is full.\n\nThe server listens on port 8000."
    stream = VerifyingStream(SupportJudge(SOURCES, embed), one_paragraph=True)
    shown = "".join(map(stream.feed, text)) + stream.finish()
    assert shown == "The answer is:\n\nA queue blocks when it is full. [2]"
    assert stream.ended


def test_sentences_that_say_nothing_are_not_checked():
    checked = verify("Yes. Here:", SOURCES, embed)
    assert checked.text == "Yes. Here:"
    assert {one.supported for one in checked.sentences} == {None}
    assert not checked.is_supported


@pytest.mark.parametrize("code", ["Use `argv[1]` and `x[7]` here.", "```\nprint(argv[7])\n```"])
def test_subscripts_in_code_are_no_citations(code: str):
    checked = verify(code, SOURCES, embed)
    assert checked.text == code
    assert checked.dropped == ()


def test_an_answer_without_sources_cites_nothing():
    assert verify("The server listens on port 8000 [1].", [], embed).text == (
        "The server listens on port 8000 [unsupported]."
    )


PARTS = st.sampled_from(
    [
        "The server listens on port 8000", " A queue blocks when it is full", "Yes", ". ", ".", " [1]", "[2]",
        " [9]", "\n\n", "\n- ", "\n12. ", "\n", "`a[1]`", "```\ncode [3]\n```\n", "e.g. ", "! ", " ",
        "[", "]",
    ]
)  # fmt: skip


@example(
    parts=["The server listens on port 8000", "```\ncode [3]\n```\n"] * 2,
    cuts=[1],
    one_paragraph=False,
)
@given(
    parts=st.lists(PARTS, max_size=12),
    cuts=st.lists(st.integers(1, 7), min_size=1, max_size=40),
    one_paragraph=st.booleans(),
)
def test_pieces_give_the_same_answer_as_the_whole(
    parts: list[str], cuts: list[int], one_paragraph: bool
):
    text = "".join(parts)
    stream = VerifyingStream(SupportJudge(SOURCES, embed), one_paragraph=one_paragraph)
    shown, at = "", 0
    for cut in cuts * (len(text) // len(cuts) + 1):
        shown += stream.feed(text[at : at + cut])
        at += cut
    shown += stream.finish()
    whole = VerifyingStream(SupportJudge(SOURCES, embed), one_paragraph=one_paragraph)
    assert shown == whole.feed(text) + whole.finish()
    assert stream.answer() == whole.answer()


@given(parts=st.lists(PARTS, max_size=12))
def test_only_existing_sources_are_cited(parts: list[str]):
    checked = verify("".join(parts), SOURCES, embed)
    assert {one.n for one in checked.citations} <= {1, 2}
    cited = {n for one in checked.sentences for n in one.cites}
    assert cited == {one.n for one in checked.citations}
