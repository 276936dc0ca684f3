import threading
from concurrent.futures import wait

import pytest

from engine.api.errors import InvalidRequest
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.document_reader import DocumentReader, FileText
from tests.retrieval.parsing.samples import docx, epub, odt, paragraph, pdf, pptx, xlsx


@pytest.fixture(scope="module")
def reader():
    return DocumentReader()


def read(reader, folder, name, data):
    (folder / name).write_bytes(data)
    return reader.read(folder / name).result(60)


def test_a_pdf_has_pages(reader, tmp_path):
    found = read(reader, tmp_path, "a.pdf", pdf(["one", "two"]))
    assert (found.name, found.pages) == ("a.pdf", 2)
    assert "one" in found.text
    assert "two" in found.text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", docx(paragraph("Some words."))),
        ("a.xlsx", xlsx()),
        ("a.pptx", pptx()),
        ("a.odt", odt()),
        ("a.epub", epub()),
        (
            "a.ipynb",
            b'{"cells": [{"cell_type": "markdown", "source": "Some words."}], "nbformat": 4}',
        ),
        (
            "a.eml",
            b"From: a@b.org\nDate: Mon, 1 Jan 2024 00:00:00 +0000\nSubject: S\n\nSome words.",
        ),
    ],
    ids=range(7),
)
def test_what_collections_read_can_be_attached(reader, tmp_path, name, data):
    assert read(reader, tmp_path, name, data).text.strip()


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.py", b"def f(): ...\n", "def f(): ...\n"),
        ("a.html", b"<p>Some words.</p>", "<p>Some words.</p>"),
        ("a.csv", b"a,b\n1,2\n", "a,b\n1,2\n"),
        ("a.txt", "Größe".encode("utf-16"), "Größe"),
        ("old.txt", "Die Größe der Tür heißt Maß, für Flüsse und Bäche".encode("latin-1"),
         "Die Größe der Tür heißt Maß, für Flüsse und Bäche"),
    ],
    ids=range(5),
)  # fmt: skip
def test_texts_are_taken_as_they_are(tmp_path, name, data, text):
    def no_parser():
        raise AssertionError("texts need no parser process")

    assert read(DocumentReader(no_parser), tmp_path, name, data) == FileText(name, text)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.pdf", pdf(["x"], password="p"), "it is protected by a password"),
        ("a.pdf", pdf([""]), "it has no text"),
        ("a.pdf", b"%PDF-1.7 damaged", "it is no valid PDF"),
        ("a.docx", b"PK\x03\x04damaged", "it is"),
        ("a.txt", b" \n", "it is empty"),
        ("a.bin", b"\x7fELF\0\0", "it is a program"),
        ("a.doc", b"\xd0\xcf\x11\xe0\0\0", "it is a document of an old Office format"),
        (
            "a.docx",
            b"\xd0\xcf\x11\xe0\0\0" + "EncryptedPackage".encode("utf-16-le"),
            "it is protected by a password",
        ),
        ("a.txt", b"x" * (4 * 1024 * 1024 + 1), "it is a text of more than 4 MiB"),
    ],
    ids=range(9),
)
def test_what_cannot_be_read_is_one_sentence(reader, tmp_path, name, data, why):
    with pytest.raises(InvalidRequest) as refused:
        read(reader, tmp_path, name, data)
    assert str(refused.value).startswith(f"{name} can't be attached: {why}")
    assert str(refused.value).endswith(".")


def test_a_file_that_is_gone_or_a_folder_is_said(reader, tmp_path):
    for path in (tmp_path / "gone.pdf", tmp_path):
        with pytest.raises(InvalidRequest, match="can't be attached"):
            reader.read(path).result(60)


class Counting:
    """A parser that counts."""

    def __init__(self):
        self.read, self.rested = 0, threading.Event()
        self.goes_on = threading.Event()

    def parse_bytes(self, name, data):
        assert self.goes_on.wait(30)
        self.read += 1
        return ParsedDocument(media_type="application/pdf", text="words", spans_of="text")

    def rest(self):
        self.rested.set()


def test_a_file_is_read_once_until_it_changes(tmp_path):
    parser = Counting()
    parser.goes_on.set()
    reader = DocumentReader(lambda: parser)
    for data, count in ((pdf(["x"]), 1), (pdf(["x"]), 1), (pdf(["longer"]), 2)):
        if parser.read < count:
            (tmp_path / "a.pdf").write_bytes(data)
        reader.read(tmp_path / "a.pdf").result(30)
        assert parser.read == count


def test_a_reading_that_is_cancelled_before_its_turn_is_left_out(tmp_path):
    parser = Counting()
    reader = DocumentReader(lambda: parser)
    for name in ("a.pdf", "b.pdf"):
        (tmp_path / name).write_bytes(pdf(["x"]))
    first, second = reader.read(tmp_path / "a.pdf"), reader.read(tmp_path / "b.pdf")
    cancelled = [one for one in (first, second) if one.cancel()]
    parser.goes_on.set()
    wait([one for one in (first, second) if one not in cancelled], 30)
    assert parser.read + len(cancelled) == 2
    assert parser.rested.wait(30)
