"""Rows of the sources pane, of citations below messages, and of a passage."""

from dataclasses import replace

from app.runtime.attachment import attached
from app.runtime.source_views import CollectionView, DocumentView, IndexJob, OpenedPassage, Piece
from app.runtime.stored_passages import StoredCitation
from app.tui.glyphs import UNICODE
from app.tui.view.citations import build_cited, build_declined, build_found, cited_numbers
from app.tui.view.passage import build_passage, build_passage_head, wrap_spans
from app.tui.view.sources import (
    MAX_DOCUMENTS,
    RowId,
    SourcesState,
    build_job,
    build_job_hint,
    build_sources,
)
from app.tui.view.spans import Span, plain, width
from tests.fakes.fake_sources import passage

DOCS = CollectionView("docs", 12, 340, 1)
ONE, TWO = passage(1, "Each bolt takes 12 Nm."), passage(2, "Nuts are brass.", file="/d/nuts.md")


def pane(state, cursor=None, cells=100):
    lines, rows = build_sources(state, cursor, UNICODE, cells)
    assert all(width(line) <= cells for line in lines)
    return plain(lines), rows


def test_without_collections_the_pane_says_how_to_make_one():
    text, rows = pane(SourcesState(collections=()))
    assert "/sources create notes         makes a collection" in text
    assert set(rows) == {None}
    assert "reading" in pane(SourcesState())[0]


def test_an_attached_collection_that_was_deleted_can_be_detached():
    text, rows = pane(SourcesState(collections=(DOCS,), attached=attached(("docs", "old"))))
    assert "old is attached but no longer exists: space detaches it" in text
    assert RowId("collection", "old") in rows


def test_of_many_documents_the_first_ones_are_listed_and_the_others_counted():
    documents = tuple(DocumentView(f"/d/{at}.md", 1) for at in range(MAX_DOCUMENTS + 7))
    text, rows = pane(SourcesState(collections=(DOCS,), documents={"docs": documents}))
    assert "7 more" in text
    assert len([one for one in rows if one is not None]) == 1 + MAX_DOCUMENTS


def test_a_passage_says_which_name_led_to_it():
    led = replace(TWO, bridge="Lina \x1b[31mBerg")
    text, _ = pane(SourcesState(collections=(DOCS,), passages=(ONE, led)), cells=140)
    first, second = (line for line in text.split("\n") if ".md:" in line)
    assert "via" not in first
    assert "nuts.md:20  via Lina" in second
    assert "\x1b" not in text


def test_a_passage_has_rank_score_tokens_prefix_span_and_what_became_of_it():
    state = SourcesState(
        collections=(DOCS,), passages=(ONE, TWO), cited=frozenset({1}), prefixes={1: "cached"},
        citations=(StoredCitation(1, True, 0, 1), StoredCitation(2, False, 0, 0)),
    )  # fmt: skip
    text, rows = pane(state, cells=110)
    first, second = (line for line in text.split("\n") if ".md:" in line)
    assert first.split() == ["[1]", "cited", "1", "0.016", "5", "cached", "100-122", "guide.md:10", "Install",
                             ">", "Linux"]  # fmt: skip
    assert second.split()[:2] == ["[2]", "dropped"]
    assert RowId("passage", "2") in rows


def test_a_narrow_pane_leaves_columns_out_and_keeps_the_document():
    text, _ = pane(SourcesState(collections=(DOCS,), passages=(ONE,)), cells=56)
    assert "guide.md:10" in text
    assert "100-122" not in text


def test_progress_is_told_with_what_is_left():
    job = IndexJob("docs", "adding", 3, 40, 120, 1, 80.0, 12.0)
    text = plain([build_job(job, UNICODE, 120)])
    assert "adding to docs" in text
    assert "3/40 files  120 passages  80/s  12.0 s left  1 cannot be read" in text
    assert build_job_hint(job) == "adding 3/40"
    assert build_job_hint(IndexJob("docs", "removing")) == "removing"
    assert build_job_hint(None) == ""
    fetching = IndexJob("", "downloading", 10 * 2**20, 91 * 2**20)
    assert "10 MiB of 91 MiB" in plain([build_job(fetching, UNICODE, 120)])


def test_cited_numbers_are_those_of_existing_passages_outside_of_code():
    text = "One [2], two [1][2], `x[3]`, [9], [1](https://x.org).\n```\na[3]\n```\n"
    assert cited_numbers(text, 3) == (2, 1)


def test_below_an_answer_are_its_sources_and_what_was_dropped():
    kept = (
        StoredCitation(1, True, 0, 1),
        StoredCitation(2, False, 0, 0),
        StoredCitation(2, False, 0, 0),
    )
    lines = plain(build_cited("n", (ONE, TWO), (1,), kept, UNICODE)).split("\n")
    assert lines == [
        "[1] guide.md:10  Install > Linux",
        "■ 2 citations dropped: [2] without support",
    ]
    unsupported = plain(build_cited("n", (ONE,), (), (), UNICODE))
    assert unsupported == "■ no passage supports this answer"
    assert build_cited("n", (ONE,), (), None, UNICODE) == []  # not checked yet


def test_below_a_message_is_how_much_was_found():
    assert plain(build_found(("docs", "notes"), 3, UNICODE)) == "3 passages from docs, notes"
    assert plain(build_found(("docs",), 1, UNICODE)) == "1 passage from docs"


def test_below_a_message_that_is_declined_is_the_rule_and_the_key_that_answers_it_anyway():
    rows = build_declined("n", "No document has the name Zoral.", "O", UNICODE)
    assert plain(rows).split("\n") == ["■ No document has the name Zoral.", "O answers it anyway"]
    assert "nothing was found" in plain(build_declined("n", "", "O", UNICODE))


def test_the_cited_words_are_lit_and_their_row_is_known():
    pieces = (
        Piece("First line.\nSecond line.\n", "around"),
        Piece("Bolts. ", "passage"),
        Piece("They take 12 Nm.", "cited"),
    )
    lines, row = build_passage(OpenedPassage(pieces, "It has changed."), 40)
    assert plain(lines) == "It has changed.\n\nFirst line.\nSecond line.\nBolts. They take 12 Nm."
    assert row == 4
    assert [span.text for span in lines[row] if "reverse" in span.style] == ["They take 12 Nm."]


def test_control_sequences_of_documents_are_removed():
    lines, _ = build_passage(OpenedPassage((Piece("a\x1b[2J\x9b1mb", "cited"),)), 40)
    head = build_passage_head(passage(1, "x", file="/d/\x1b]0;t\x07a.md"), "", "", UNICODE, 80)
    assert plain(lines) == "ab"
    assert "\x1b" not in plain(head)


def test_rows_break_between_words_and_never_exceed_their_cells():
    rows = wrap_spans([Span("日本語 prefix ", "a"), Span("abcdefghijklmnop\n\n\tx", "b")], 8)
    assert [plain([row]) for row in rows] == [
        "日本語 ",
        "prefix ",
        "abcdefgh",
        "ijklmnop",
        "",
        "    x",
    ]
    assert all(width(row) <= 8 for row in rows)
