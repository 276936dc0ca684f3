"""A passage with the text of its document around it."""

import os

import pytest

from app.runtime.opened_passage import AROUND_BYTES, Section, open_passage
from tests.fakes.fake_sources import passage

BEFORE, OWN, AFTER = "# Töne\n\nDavor.\n", "Ein süßer Ton, zweimal.", "\nDanach.\n"


def stored(file, text=OWN, before=BEFORE, encoding="utf-8", **fields):
    start = len(before.encode(encoding))
    end = start + len(text.encode(encoding))
    return passage(1, text, file=str(file), start=start, end=end, **fields)


def parts(opened):
    return [(one.part, one.text) for one in opened.pieces]


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "töne.md"
    file.write_text(BEFORE + OWN + AFTER, encoding="utf-8")
    return file


def test_the_passage_is_lit_between_what_is_around_it(file):
    opened = open_passage(stored(file), None)
    assert parts(opened) == [("around", BEFORE), ("cited", OWN), ("around", AFTER)]
    assert opened.note == ""


def test_only_the_cited_words_are_lit(file):
    one = stored(file)
    start = one.start + len(b"Ein ")
    opened = open_passage(one, (start, start + len("süßer Ton".encode())))
    assert parts(opened)[1:-1] == [
        ("passage", "Ein "),
        ("cited", "süßer Ton"),
        ("passage", ", zweimal."),
    ]


@pytest.mark.parametrize("cited", [(0, 3), (50, 40), (10**9, 10**9 + 1)])
def test_words_outside_of_the_passage_light_all_of_it(file, cited):
    assert ("cited", OWN) in parts(open_passage(stored(file), cited))


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le"])
def test_files_in_other_encodings_are_read(tmp_path, encoding):
    file = tmp_path / "other.txt"
    file.write_bytes((BEFORE + OWN + AFTER).encode(encoding))
    opened = open_passage(stored(file, encoding=encoding), None)
    assert parts(opened) == [("around", BEFORE), ("cited", OWN), ("around", AFTER)]


def test_a_file_that_has_changed_shows_what_the_model_has_read(file):
    one = stored(file)
    file.write_text("Alles anders.")
    opened = open_passage(one, None)
    assert parts(opened) == [("cited", OWN)]
    assert opened.note == "töne.md has changed since it was indexed."


def test_a_file_that_is_gone_shows_what_the_model_has_read(file):
    one = stored(file)
    file.unlink()
    opened = open_passage(one, None)
    assert (parts(opened), opened.note) == ([("cited", OWN)], "töne.md cannot be read any more.")


def test_a_pipe_in_place_of_the_file_is_not_opened(file):
    one = stored(file)
    file.unlink()
    os.mkfifo(file)
    assert open_passage(one, None).note == "töne.md cannot be read any more."


def test_of_a_long_document_the_lines_around_the_passage_are_shown(tmp_path):
    file = tmp_path / "long.txt"
    line = "x" * 99 + "\n"
    before = line * 1000
    file.write_text(before + OWN + "\n" + line * 1000)
    first, _, last = open_passage(stored(file, before=before), None).pieces
    assert AROUND_BYTES - 100 <= len(first.text) <= AROUND_BYTES
    assert first.text.startswith("x" * 99)
    assert len(last.text) <= AROUND_BYTES
    assert set(last.text.split("\n")) == {"", "x" * 99}


def test_of_extracted_text_the_section_is_shown(file):
    one = stored(file, spans_of="text")
    section = Section((BEFORE + OWN + AFTER).encode()[8:], 8)
    opened = open_passage(one, None, section=section)
    assert parts(opened) == [
        ("around", BEFORE.encode()[8:].decode()),
        ("cited", OWN),
        ("around", AFTER),
    ]
    assert open_passage(one, None).note == "töne.md is no longer in the collection."
