"""`benchmarks/known_items.py`: which queries are made of a page, and what counts as found."""

from collections import Counter

import pytest

from benchmarks.known_items import (
    KINDS,
    KnownItem,
    definitions,
    first_sentence,
    gist_of,
    known_items,
    plain,
    question_of,
    sections,
    vague_of,
)

PAGE = """\
:mod:`files` --- Work with files
================================

.. module:: files

Opening many files at the same time
-----------------------------------

The module offers helpers that open several remote files in parallel threads and
keep an ordered list of results. More text.

.. function:: duplicate(source, target, *, \\
              follow=True)
   :noindex:

   .. versionadded:: 3.4
      Long ago.

   Copy the contents of the file named *source* to a file named *target* using
   :func:`os.sendfile`.  Nothing else is copied.

   A second paragraph.

.. data:: NOTHING

.. method:: Reader.readline(size)

   Return one line of at most ``size`` bytes from the open stream é.
"""


def test_a_definition_has_its_name_parameters_and_first_sentence():
    first, second = definitions(PAGE)
    assert (first.name, first.parameters) == ("duplicate", ("source", "target", "follow"))
    assert first.sentence == (
        "Copy the contents of the file named source to a file named target using os.sendfile."
    )
    assert second.name == "Reader.readline"


def test_a_span_is_of_bytes_and_ends_behind_the_first_paragraph():
    _, second = definitions(PAGE)
    text = PAGE.encode()[second.start : second.end].decode()
    assert text.startswith(".. method:: Reader.readline")
    assert text.endswith("open stream é.\n")


def test_a_section_begins_with_prose():
    titles = [one.title for one in sections(PAGE)]
    assert titles == ["Opening many files at the same time"]  # the first begins with a directive


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        (
            "Return True if the path names a directory on this machine.",
            "how can I tell if the location names a folder on this machine?",
        ),
        (
            "Copies the file to a directory and keeps all permission bits.",
            "how do I copy the file to a folder and keeps all permission bits?",
        ),
        ("Deprecated alias of a function in another module of this package.", ""),
        ("Return it.", ""),
    ],
)
def test_a_question_comes_of_a_sentence_that_begins_with_a_verb(sentence, question):
    assert question_of(sentence, "unrelated") == question


def test_a_question_does_not_have_the_name():
    question = question_of("Return the basename of a given path as an ordinary string.", "basename")
    assert "basename" not in question


def test_a_gist_has_two_of_three_content_words_in_other_words():
    gist = gist_of("The kernel will create a new directory and delete every file of older builds.")
    assert gist == "kernel make folder erase file older"


def test_a_vague_query_lacks_the_rarest_words():
    counts = Counter(memory=9, pages=8, kernel=7, moved=6, hugetlbfs=1, compaction=2, node=5)
    sentence = "the memory pages of the kernel are moved by compaction in hugetlbfs to a node"
    assert vague_of(sentence, counts) == "the memory pages of the kernel are moved by in to a"
    assert vague_of("the memory pages of the kernel", counts) == ""


def test_markup_is_left_out():
    assert plain("see :func:`~os.path.join` and ``x``, `here <url>`_ *now*") == (
        "see os.path.join and x, here now"
    )


def test_an_abbreviation_does_not_end_a_sentence():
    assert first_sentence("Takes a path, e.g. a file. Then more.") == "Takes a path, e.g. a file."
    assert first_sentence("No end") == ""


def test_items_are_the_same_each_time_and_limited_per_kind_and_half(tmp_path):
    file = tmp_path / "files.rst.txt"
    file.write_text(PAGE)
    items = known_items([file], 10)
    assert items == known_items([file], 10)
    assert {item.kind for item in items} == set(KINDS) - {"written"}
    assert len(known_items([file], 1)) < len(items)


def test_a_written_question_is_asked_of_its_page(tmp_path):
    page = tmp_path / "library" / "shlex.rst.txt"
    page.parent.mkdir()
    page.write_text(
        ".. function:: join(split_command)\n\n   Does what its name says, and no more.\n"
    )
    written = [item for item in known_items([page], 10) if item.kind == "written"]
    assert [item.query for item in written] == ["build one command line out of a list of words"]
    assert (written[0].start, written[0].end) == (0, len(page.read_bytes()))


def test_a_query_with_two_targets_is_left_out(tmp_path):
    names = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for name in names:
        name.write_text(PAGE)
    assert known_items(names, 10) == []


@pytest.mark.parametrize(
    ("file", "start", "end", "found"),
    [
        ("f", 100, 200, True),
        ("f", 0, 150, True),  # half of the target
        ("f", 0, 149, False),
        ("f", 120, 140, True),  # a short chunk inside
        ("f", 200, 300, False),
        ("g", 100, 200, False),
        ("f", 150, 150, False),
    ],
)
def test_a_chunk_is_relevant_if_it_shares_half_of_the_shorter(file, start, end, found):
    assert KnownItem("q", "gist", "f", 100, 200).found_in(file, start, end) is found
