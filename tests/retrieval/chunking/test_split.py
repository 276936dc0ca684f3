from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engine.retrieval.api.chunk import Chunk
from engine.retrieval.api.parsed_document import Heading, ParsedDocument
from engine.retrieval.chunking import token_counter
from engine.retrieval.chunking.split import split
from engine.retrieval.chunking.token_counter import TokenCounter

_FRAGMENTS = st.one_of(
    st.sampled_from(
        (
            *(
                "the quick ",
                "fox. ",
                "brown\n",
                "\n\n",
                "    ",
                "singing? ",
                "foo(bar)[0]; ",
                "\r\n",
            ),
            *(
                "世界。",
                "हिन्दी। ",
                "สวัสดี",
                "한국어 ",
                "e\u0301",
                "👩\u200d👧 ",
                "—",
                "\u200b",
                "\ufeff",
            ),
            *("[SEP]", "a\x0cb", "\x00", "\x1f", "\u3000", " " * 300, "x" * 120, "0123456789" * 60),
        )
    ),
    st.text(max_size=12),
)
_TEXTS = st.lists(_FRAGMENTS, max_size=60).map("".join)


def _document(text: str, **attributes) -> ParsedDocument:
    return ParsedDocument("text/plain", text, "file", **attributes)


def _numbers(chunks: list[Chunk]) -> list[tuple[int, int]]:
    return [(chunk.start, chunk.end) for chunk in chunks]


def _check_contract(chunks: list[Chunk], data: bytes, document: ParsedDocument) -> None:
    for chunk in chunks:
        assert data[chunk.start : chunk.end].decode(document.encoding) == chunk.text
        assert chunk.text.strip()
        assert chunk.section_start <= chunk.start < chunk.end <= chunk.section_end
    for first, second in pairwise(chunks):
        assert first.start < second.start
        assert first.end < second.end
    covered = bytearray(data)
    for chunk in chunks:
        covered[chunk.start : chunk.end] = b" " * (chunk.end - chunk.start)
    left = bytes(covered)[document.start :]
    if document.encoding == "utf-8":
        assert not left.decode().strip()


class TestContract:
    @settings(max_examples=150, deadline=None)
    @given(
        text=_TEXTS,
        shares=st.lists(st.floats(0, 1), max_size=8),
        levels=st.lists(st.integers(1, 3), min_size=4, max_size=4),
        most=st.sampled_from([18, 24, 64]),
        overlap=st.sampled_from([0, 3, 7]),
    )
    @example(  # what is repeated leaves too little room for the last word
        text="the quick the quick the quick 000000000000",
        shares=[],
        levels=[1] * 4,
        most=18,
        overlap=7,
    )
    def test_spans_are_exact_cover_everything_and_fit(
        self, bert: Tokenizer, text: str, shares, levels, most, overlap
    ) -> None:
        encoded = text.encode()
        places = sorted({round(share * len(text)) for share in shares})
        bytes_at = [len(text[:place].encode()) for place in places]
        headings = tuple(
            Heading(level, f"H{place}", place)
            for level, place in zip(levels, bytes_at[::2], strict=False)
        )
        document = _document(text, headings=headings, breaks=tuple(bytes_at[1::2]))
        chunks = split(document, bert, max_tokens=most, overlap_tokens=overlap)
        _check_contract(chunks, encoded, document)
        for chunk in chunks:
            ids = bert.encode(chunk.text).ids
            assert len(ids) <= most
            assert chunk.tokens == len(ids) - 2

    @settings(max_examples=60, deadline=None)
    @given(text=_TEXTS)
    def test_a_tokenizer_that_looks_across_words_is_checked(
        self, byte_level: Tokenizer, text: str
    ) -> None:
        document = _document(text)
        chunks = split(document, byte_level, max_tokens=24, overlap_tokens=4)
        _check_contract(chunks, text.encode(), document)
        for chunk in chunks:
            assert chunk.tokens == len(byte_level.encode(chunk.text).ids) <= 24

    @settings(max_examples=60, deadline=None)
    @given(text=_TEXTS, encoding=st.sampled_from(["utf-16-le", "utf-32-be", "gb18030"]))
    def test_offsets_are_those_of_the_encoding_behind_the_mark(
        self, bert: Tokenizer, text: str, encoding: str
    ) -> None:
        mark = "\ufeff".encode(encoding)
        document = _document(text, encoding=encoding, start=len(mark))
        chunks = split(document, bert, max_tokens=32, overlap_tokens=4)
        _check_contract(chunks, mark + text.encode(encoding), document)

    def test_one_counter_gives_what_its_tokenizer_gives(self, bert: Tokenizer) -> None:
        counter = TokenCounter(bert)
        texts = ["the fox. " * 60, "quick brown fox " * 30, "the fox. " * 60]
        for text in texts:
            assert split(_document(text), counter) == split(_document(text), bert)

    def test_forgetting_counts_changes_nothing(
        self, bert: Tokenizer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        texts = [f"the fox {number} over the quick fox. " * 40 for number in range(5)]
        expected = [split(_document(text), bert) for text in texts]
        monkeypatch.setattr(token_counter, "_MAX_KEPT_CHARACTERS", 3)
        counter = TokenCounter(bert)
        assert [split(_document(text), counter) for text in texts] == expected

    def test_a_text_of_several_blocks_has_the_chunks_of_its_parts(self, bert: Tokenizer) -> None:
        line = "the quick brown fox over the fox\n"
        text = line * (3_000_000 // len(line))
        chunks = split(_document(text), bert, overlap_tokens=0)
        assert chunks[-1].end == len(text) - 1
        assert {chunk.tokens for chunk in chunks[:-1]} == {chunks[0].tokens}

    def test_no_text_has_no_chunks(self, bert: Tokenizer) -> None:
        assert split(_document(" \n\t\n"), bert) == []

    def test_impossible_limits_are_refused(self, bert: Tokenizer) -> None:
        with pytest.raises(ValueError, match="at least 18"):
            split(_document("fox"), bert, max_tokens=17)
        with pytest.raises(ValueError, match="from 0 to 126"):
            split(_document("fox"), bert, overlap_tokens=127)


class TestPlaces:
    def test_a_chunk_begins_at_a_heading_once_the_one_before_is_a_quarter_full(
        self, bert: Tokenizer
    ) -> None:
        body = "the quick fox.\n" * 5
        text = "".join(f"# {name}\n{body}" for name in "abc")
        starts = [text.index(f"# {name}") for name in "abc"]
        document = _document(text, headings=tuple(Heading(1, text[s + 2], s) for s in starts))
        chunks = split(document, bert, max_tokens=66, overlap_tokens=8)
        assert [chunk.start for chunk in chunks] == starts
        assert [chunk.heading_path for chunk in chunks] == [("a",), ("b",), ("c",)]

    def test_short_sections_share_a_chunk_that_is_named_after_what_is_around_them(
        self, bert: Tokenizer
    ) -> None:
        text = "# top\n## a\nfox\n## b\nfox\n"
        headings = (Heading(1, "top", 0), Heading(2, "a", 6), Heading(2, "b", 15))
        (chunk,) = split(_document(text, headings=headings), bert)
        assert chunk.heading_path == ("top",)

    def test_paragraphs_are_better_than_sentences_and_those_than_lines(
        self, bert: Tokenizer
    ) -> None:
        text = (
            "the fox\nover the fox. the\nquick fox\n\nbrown fox. the fox\nthe fox the fox the fox"
        )
        chunks = split(_document(text), bert, max_tokens=18, overlap_tokens=0)
        assert chunks[0].text == "the fox\nover the fox. the\nquick fox"
        text = "the fox the fox\nthe fox. the fox the\nfox the fox the fox the fox the fox"
        chunks = split(_document(text), bert, max_tokens=18, overlap_tokens=0)
        assert chunks[0].text == "the fox the fox\nthe fox."

    def test_a_full_stop_ends_nothing_in_source_code(self, bert: Tokenizer) -> None:
        text = "the fox the fox\nthe fox. the fox the\nfox the fox the fox the fox the fox"
        chunks = split(_document(text, language="python"), bert, max_tokens=18, overlap_tokens=0)
        assert chunks[0].text == "the fox the fox\nthe fox. the fox the"

    def test_the_end_of_a_chunk_is_repeated_by_whole_sentences(self, bert: Tokenizer) -> None:
        text = "the quick brown fox. " * 20
        chunks = split(_document(text), bert, max_tokens=42, overlap_tokens=6)
        assert len(chunks) > 2
        for first, second in pairwise(chunks):
            assert text[second.start : first.end] == "the quick brown fox."

    def test_nothing_is_repeated_at_a_break(self, bert: Tokenizer) -> None:
        row = "the quick brown fox\n"
        text = row * 20
        breaks = tuple(range(0, len(text), len(row)))
        chunks = split(_document(text, breaks=breaks), bert, max_tokens=42, overlap_tokens=6)
        assert all(first.end < second.start for first, second in pairwise(chunks))

    def test_no_chunk_of_a_few_words_is_left_before_a_heading(self, bert: Tokenizer) -> None:
        text = "the fox. " * 24 + "\n# next\nfox"
        document = _document(text, headings=(Heading(1, "next", text.index("# next")),))
        first, second, _ = split(document, bert, max_tokens=66, overlap_tokens=0)
        assert min(first.tokens, second.tokens) >= 16

    def test_indentation_stays_with_its_line(self, bert: Tokenizer) -> None:
        text = "the fox the fox the fox the fox the fox\n\n\n    brown fox the fox the fox the fox"
        chunks = split(_document(text), bert, max_tokens=18, overlap_tokens=0)
        assert chunks[1].text.startswith("    brown")

    def test_a_word_longer_than_a_chunk_is_cut(self, bert: Tokenizer) -> None:
        chunks = split(_document("x" * 90), bert, max_tokens=34, overlap_tokens=4)
        assert "".join(chunk.text for chunk in chunks) == "x" * 90

    def test_unknown_words_do_not_make_endless_chunks(self, bert: Tokenizer) -> None:
        text = "ж" * 100_000 + " " + ("ф" * 200 + " ") * 500
        chunks = split(_document(text), bert, max_tokens=66, overlap_tokens=8)
        assert max(len(chunk.text) for chunk in chunks) <= 64 * 16


class TestWhatIsKnownOfAChunk:
    def test_its_line_and_page(self, bert: Tokenizer) -> None:
        text = "the fox the fox the fox the fox.\n" * 4
        document = _document(text, pages=(0, 66))
        chunks = split(document, bert, max_tokens=18, overlap_tokens=0)
        assert [(one.line, one.page) for one in chunks] == [(1, 1), (2, 1), (3, 2), (4, 2)]

    def test_lines_end_with_carriage_returns_too(self, bert: Tokenizer) -> None:
        text = "the fox the fox the fox the fox.\r\n" + "the fox the fox the fox the fox.\r" * 2
        chunks = split(_document(text), bert, max_tokens=18, overlap_tokens=0)
        assert [one.line for one in chunks] == [1, 2, 3]

    def test_the_largest_section_that_fits_is_read_in_its_place(self, bert: Tokenizer) -> None:
        small = "the fox.\n" * 6
        text = f"# one\n## a\n{small}## b\n{small}# two\n" + "the fox.\n" * 100
        one, a, b, two = (text.index(mark) for mark in ("# one", "## a", "## b", "# two"))
        headings = (
            Heading(1, "one", one),
            Heading(2, "a", a),
            Heading(2, "b", b),
            Heading(1, "two", two),
        )
        chunks = split(_document(text, headings=headings), bert, max_tokens=34, overlap_tokens=0)
        assert (chunks[0].section_start, chunks[0].section_end) == (one, two)
        assert chunks[-1].section_start > two  # it is too long: read in parts
        parts = {(chunk.section_start, chunk.section_end) for chunk in chunks if chunk.start >= two}
        assert len(parts) > 1
        assert all(end - start <= 4 * 32 * 9 for start, end in parts)
