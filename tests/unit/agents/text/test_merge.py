"""Three-way merge and unified diffs: their laws."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.api.errors import InvalidTask
from agents.text.merge import merge_lines, merge_texts
from agents.text.unified_diff import apply_diff, make_diff, parse_diff

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n"]), max_size=12)
TEXT = st.text(alphabet="ab\n\r \\-+@", max_size=60)


@given(LINES, LINES)
def test_an_unchanged_side_gives_the_other(base, changed):
    assert list(merge_lines(base, base, changed).lines) == changed
    assert list(merge_lines(base, changed, base).lines) == changed
    assert not merge_lines(base, base, changed).conflicts


@given(LINES, LINES)
def test_equal_sides_give_themselves(base, changed):
    merged = merge_lines(base, changed, changed)
    assert list(merged.lines) == changed
    assert not merged.conflicts


@given(LINES, LINES, LINES)
def test_the_order_of_the_sides_matters_only_in_conflicts(base, ours, theirs):
    one, other = merge_lines(base, ours, theirs), merge_lines(base, theirs, ours)
    assert len(one.conflicts) == len(other.conflicts)
    if not one.conflicts:
        assert one.lines == other.lines


def test_changes_of_different_lines_are_joined():
    merged = merge_texts("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n")
    assert "".join(merged.lines) == "A\nb\nC\n"


def test_a_conflict_is_marked_and_listed():
    merged = merge_texts("a\nb\n", "a\nx\n", "a\ny\n")
    assert "".join(merged.lines) == "a\n<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n"
    (conflict,) = merged.conflicts
    assert (conflict.line, conflict.ours, conflict.theirs) == (2, ("x\n",), ("y\n",))


@given(TEXT, TEXT)
def test_applying_a_diff_gives_the_changed_text(before, after):
    diff = make_diff("f.txt", before, after)
    if before == after:
        assert diff == ""
        return
    for loose in (False, True):
        assert apply_diff(diff, {"f.txt": before}, loose=loose) == {"f.txt": after}


def test_a_file_is_made_and_removed():
    made = make_diff("f", None, "a\n")
    assert apply_diff(made, {}) == {"f": "a\n"}
    assert apply_diff(make_diff("f", "a\n", None), {"f": "a\n"}) == {"f": None}
    with pytest.raises(InvalidTask, match="exists already"):
        apply_diff(made, {"f": ""})


def test_a_hunk_is_found_at_another_line_only_where_it_is_alone():
    diff = "Please apply:\n" + make_diff("f", "a\nb\nc\n", "a\nB\nc\n")
    moved = {"f": "new\na\nb\nc\n"}
    assert apply_diff(diff, moved, loose=True) == {"f": "new\na\nB\nc\n"}
    for text in ("x\na\nb\nc\na\nb\nc\n", "a\nother\nc\n"):
        with pytest.raises(InvalidTask, match="does not match"):
            apply_diff(diff, {"f": text}, loose=True)
    with pytest.raises(InvalidTask, match="not part of a hunk"):
        apply_diff(diff, moved)
    with pytest.raises(InvalidTask, match="does not match"):
        apply_diff(diff.partition("\n")[2], moved)


def test_a_diff_may_not_leave_the_folder():
    diff = "--- /dev/null\n+++ b/../../etc/passwd\n@@ -0,0 +1 @@\n+x\n"
    with pytest.raises(InvalidTask, match="outside the project"):
        apply_diff(diff, {})


def test_a_hunk_that_ends_early_is_refused():
    with pytest.raises(InvalidTask, match="does not belong to its hunk"):
        parse_diff("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n")


@given(st.text(alphabet="-+@ ab/\n0123,", max_size=120))
def test_any_text_is_a_diff_or_refused(text):
    for loose in (False, True):
        with contextlib.suppress(InvalidTask):
            apply_diff("--- a/f\n+++ b/f\n@@ -1 +1 @@\n" + text, {"f": "a\nb\n"}, loose=loose)
