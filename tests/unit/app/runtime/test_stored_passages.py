"""Passages and citations as JSON, also of other versions and of strangers."""

import json
from dataclasses import replace

import pytest

from app.runtime.stored_passages import (
    FoundFor,
    StoredCitation,
    dump_citations,
    dump_passages,
    load_citations,
    load_found_for,
    load_passages,
)
from tests.fakes.fake_sources import passage

PASSAGE = passage(1, "The text — with “signs”.")


def test_what_is_written_is_read():
    scanned = passage(2, "日本", page=3, spans_of="text", headings=())
    assert load_passages(dump_passages([PASSAGE, scanned])) == (PASSAGE, scanned)
    citations = (StoredCitation(1, True, 5, 9), StoredCitation(2, False, 0, 0))
    assert load_citations(dump_citations(citations)) == citations


@pytest.mark.parametrize("text", [None, "", "no json", "{}", "3", "null", "[1, [], {}]"])
def test_what_is_no_list_of_passages_holds_none(text):
    assert load_passages(text) == ()
    assert load_citations(text) == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [("start", -1), ("start", True), ("end", "9"), ("spans_of", "web"), ("headings", 3), ("score", "x"),
     ("page", "one"), ("link", [3]), ("link", [-1, 4]), ("link", 3)],
)  # fmt: skip
def test_an_invalid_passage_is_left_out_and_the_others_stay(field, value):
    (entry,) = json.loads(dump_passages([PASSAGE]))
    text = json.dumps([entry | {field: value}, entry])
    assert load_passages(text) == (PASSAGE,)


def test_a_passage_without_a_field_is_left_out():
    (entry,) = json.loads(dump_passages([PASSAGE]))
    del entry["file"]
    assert load_passages(json.dumps([entry])) == ()


def test_the_place_in_a_chain_is_kept_and_may_be_missing():
    linked = replace(PASSAGE, bridge="Lina Berg", link=(4, 8))
    assert load_passages(dump_passages([linked])) == (linked,)
    (entry,) = json.loads(dump_passages([linked]))
    del entry["link"], entry["bridge"]  # as an older version wrote it
    assert load_passages(json.dumps([entry])) == (PASSAGE,)


def test_what_else_was_found_stands_before_the_passages_and_is_none_of_them():
    found = FoundFor(("docs",), "No document has the name Zoral.")
    text = dump_passages([PASSAGE], found)
    assert load_passages(text) == (PASSAGE,)
    assert load_found_for(text) == found
    assert load_found_for(dump_passages([PASSAGE])) == FoundFor()


@pytest.mark.parametrize(
    "text", [None, "x", "{}", "[]", "[3]", '[{"names": 3}]', '[{"file": "a"}]']
)
def test_of_other_texts_nothing_else_is_known(text):
    assert load_found_for(text) == FoundFor()
