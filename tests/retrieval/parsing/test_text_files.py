# ruff: noqa: E501
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.byte_offsets import ByteOffsets
from engine.retrieval.parsing.text_encoding import decode_text

Parse = Callable[[str, bytes], ParsedDocument]


class TestEncodings:
    @pytest.mark.parametrize(
        "encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
    )
    def test_a_byte_order_mark_names_the_encoding(self, parse: Parse, encoding: str) -> None:
        data = "\ufeffनमस्ते, 世界 🌍".encode(encoding)
        document = parse("a.txt", data)
        assert document.text == "नमस्ते, 世界 🌍"
        assert (document.encoding, document.spans_of) == (encoding, "file")
        assert document.start == len("\ufeff".encode(encoding))

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
    def test_utf_16_needs_no_mark(self, parse: Parse, encoding: str) -> None:
        document = parse("a.txt", "Plain words, and more of them.\n".encode(encoding))
        assert (document.text, document.encoding) == ("Plain words, and more of them.\n", encoding)

    def test_old_western_encodings_are_found(self, parse: Parse) -> None:
        text = "Der Fluß trägt große Schiffe über die Brücke nach Köln, für zwölf Tage.\n" * 4
        document = parse("a.txt", text.encode("cp1252"))
        assert document.text == text
        assert document.spans_of == "file"

    def test_old_eastern_encodings_are_found(self, parse: Parse) -> None:
        text = "Река течёт через город, и мосты над ней стоят много лет.\n" * 4
        assert parse("a.txt", text.encode("cp1251")).text == text

    def test_utf_8_with_a_damaged_byte_stays_utf_8(self, parse: Parse) -> None:
        data = "Schöne Grüße aus Köln. ".encode() * 20 + b"\xff" + "größer".encode()
        document = parse("a.log", data)
        assert document.text.endswith("\ufffdgrößer")
        assert document.spans_of == "text"
        assert "1 place" in document.notes[0]

    def test_a_binary_file_is_refused(self, parse: Parse) -> None:
        for data in (bytes(range(256)) * 20, b"\x00\x01\x02\x03" * 100, b"\x01\x02 text " * 50):
            with pytest.raises(Unreadable, match="binary"):
                parse("a.bin", data)

    @settings(max_examples=300, deadline=None)
    @given(st.binary(max_size=400))
    @example(b"  \x83\x97\xa1")  # shift_jis_2004, where one code is two characters
    def test_any_bytes_are_decoded_exactly_or_refused(self, data: bytes) -> None:
        try:
            found = decode_text(data)
        except Unreadable:
            return
        if found.spans_of == "file":
            assert data[found.start :].decode(found.encoding) == found.text
            offsets = ByteOffsets(found.text, found.encoding, found.start)
            places = offsets.bytes(range(len(found.text) + 1))
            for index, (begin, end) in enumerate(pairwise(places)):
                assert data[begin:end].decode(found.encoding) == found.text[index]
                assert offsets.character(begin) == offsets.character(end - 1) == index


class TestMarkdown:
    def test_headings_of_both_kinds_outside_of_code(self, parse: Parse) -> None:
        text = (
            "---\ntitle: x\n---\nTop *level*\n===\n\n## The `a` [link](u) ##\n\n```sh\n# no heading\n```\n"
            "~~~~\n~~~\n# nor this\n~~~~\nSub\n---\n#hashtag\n\n- item\n---\n"
        )
        document = parse("a.md", text.encode())
        assert [(one.level, one.title) for one in document.headings] == [
            *((1, "Top level"), (2, "The a link"), (2, "Sub"))
        ]
        assert document.title == "Top level"
        assert text[document.headings[1].start :].startswith("## The")

    def test_long_lines_take_no_longer_than_their_length(self, parse: Parse) -> None:
        # Each was quadratic or worse in a first draft; then this test does not end.
        for line in (
            "# a" + " " * 2_000_000 + "b",
            "# " + "[" * 2_000_000,
            "#" * 2_000_000,
            "a\n=" * 500_000,
        ):
            parse("a.md", line.encode())

    def test_restructured_text_has_levels_in_the_order_of_their_marks(self, parse: Parse) -> None:
        text = "=====\nTitle\n=====\n\nPart\n====\n\n:mod:`os` paths\n---------------\n\nnot\n--\n\nPart 2\n======\n"
        document = parse("a.rst", text.encode())
        assert [(one.level, one.title) for one in document.headings] == [
            *((1, "Title"), (2, "Part"), (3, "os paths"), (2, "Part 2"))
        ]


class TestRows:
    def test_each_row_is_a_break_but_lines_in_quotes_are_not(self, parse: Parse) -> None:
        text = 'name,note\nada,"two\nlines"\nbob,x\n'
        document = parse("a.csv", text.encode())
        assert document.media_type == "text/csv"
        assert document.breaks == (text.index("ada"), text.index("bob"))

    def test_json_lines(self, parse: Parse) -> None:
        text = '{"a": "b \\" c"}\n{"a": 2}\n'
        document = parse("a.jsonl", text.encode())
        assert text.index('{"a": 2}') in document.breaks


class TestSourceCode:
    def test_python(self, parse: Parse) -> None:
        text = (
            'import os\n\n# About the class.\nclass Ä:\n    """Doc."""\n\n    @property\n    def value(self):\n'
            "        def inner(): pass\n\n@cache\ndef free(): pass\n"
        )
        document = parse("a.py", text.encode())
        assert document.language == "python"
        data = text.encode()
        assert [(one.level, one.title) for one in document.headings] == [
            *((1, "Ä"), (2, "value"), (3, "inner"), (1, "free"))
        ]
        begins = [data[one.start :].partition(b"\n")[0].decode() for one in document.headings]
        assert begins == [
            *("# About the class.", "    @property", "        def inner(): pass", "@cache")
        ]
        assert 0 in document.breaks

    @pytest.mark.parametrize(
        ("name", "text", "titles"),
        [
            ("a.rs", "/// Doc\npub struct P;\nimpl P {\n  fn x(&self) {}\n}\n", ["P", "P", "x"]),
            ("a.go", "package a\n\ntype T struct{}\n\nfunc (t T) Run() {}\n", ["T", "Run"]),
            ("a.js", "export class A { go() {} }\nfunction f() {}\n", ["A", "go", "f"]),
            ("a.ts", "export interface I { x: number }\nenum E { A }\n", ["I", "E"]),
            ("A.java", "class A { enum K { X } void go() {} }\n", ["A", "K", "go"]),
            ("a.c", "struct s { int a; };\nstatic int *f(int a) { return 0; }\n", ["s", "f"]),
            ("a.sh", "go() { echo; }\n", ["go"]),
            ("a.toml", "[tool.ruff]\nx = 1\n", ["tool.ruff"]),
        ],
    )
    def test_definitions_by_language(
        self, parse: Parse, name: str, text: str, titles: list[str]
    ) -> None:
        assert [one.title for one in parse(name, text.encode()).headings] == titles

    def test_entries_of_json_are_breaks(self, parse: Parse) -> None:
        text = '{\n  "a": [\n    {"x": 1},\n    {"x": 2}\n  ],\n  "b": 3\n}\n'
        document = parse("a.json", text.encode())
        begins = [text[one:].strip().partition("\n")[0] for one in document.breaks]
        assert begins == ["{", '"a": [', '{"x": 1},', '{"x": 2}', '"b": 3']

    def test_a_script_is_known_by_its_first_line(self, parse: Parse) -> None:
        assert parse("tool", b"#!/usr/bin/env python3\nprint()\n").language == "python"

    def test_a_language_without_grammar_is_read_without_outline(self, parse: Parse) -> None:
        document = parse("a.lua", b"function f() end\n")
        assert (document.language, document.headings) == ("lua", ())
