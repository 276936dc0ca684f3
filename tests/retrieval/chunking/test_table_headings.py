"""Chunks that begin inside of a table are embedded with its header row, and fit with it."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from benchmarks.office_cases import docx, par, row, table
from engine.retrieval.api.chunk import Chunk
from engine.retrieval.api.parsed_document import Heading, ParsedDocument, TableRows
from engine.retrieval.chunking.split import split
from engine.retrieval.chunking.split_large import split_large
from engine.retrieval.chunking.token_counter import TokenCounter
from engine.retrieval.parsing.large_text import open_large_text
from engine.retrieval.parsing.parser_limits import ParserLimits
from engine.retrieval.parsing.parser_pool import ParserPool

_CELLS = st.sampled_from(["fox", "the quick brown", "12", "", "世界", "singing over", "x" * 30])
_ROWS = st.lists(st.lists(_CELLS, min_size=1, max_size=12).map(",".join), min_size=1, max_size=40)


def _sheet(tables: list[tuple[str, list[str]]], name: str = "fox") -> ParsedDocument:
    """A sheet of tables, each a header row and its rows."""
    text, rows, breaks = f"{name}\n", [TableRows(0, "")], []
    for header, lines in tables:
        rows.append(TableRows(len(text.encode()), ""))
        breaks.append(len(text.encode()))
        text += f"{header}\n"
        rows.append(TableRows(len(text.encode()), header))
        for line in lines:
            breaks.append(len(text.encode()))
            text += f"{line}\n"
        text += "\n"
    return ParsedDocument(
        "text/plain", text, "text", headings=(Heading(1, name, 0),), breaks=tuple(breaks),
        table_rows=tuple(rows),
    )  # fmt: skip


def _header_above(document: ParsedDocument, chunk: Chunk) -> str:
    return [one for one in document.table_rows if one.start <= chunk.start][-1].header


@settings(max_examples=120, deadline=None)
@given(
    tables=st.lists(st.tuples(st.lists(_CELLS, max_size=30).map(",".join), _ROWS), max_size=4),
    name=st.sampled_from(["fox", "the " * 60]),
    exact=st.booleans(),
    budget=st.integers(24, 80),
    overlap=st.integers(0, 7),
)
@example(  # of the names from the chunk's column on, nothing fits beside the sheet and the first cell
    tables=[
        ("", ["fox"]),
        ("fox,fox,fox,fox,fox,fox,fox,世界,fox", ["12,fox,fox,fox,fox,fox,fox,the quick brown"]),
    ],
    name="fox",
    exact=False,
    budget=24,
    overlap=0,
)
def test_chunks_fit_with_their_headings(
    bert: Tokenizer, byte_level: Tokenizer, tables, name, exact, budget, overlap
) -> None:
    tokenizer = bert if exact else byte_level
    document = _sheet(tables, name.strip())
    chunks = split(document, tokenizer, max_tokens=budget, overlap_tokens=overlap)
    whole = document.text.encode()
    for chunk in chunks:
        assert whole[chunk.start : chunk.end].decode() == chunk.text
        assert len(tokenizer.encode(chunk.embedded_text)) <= budget or len(chunk.text) == 1
        header = _header_above(document, chunk)
        begins_row = whole[: chunk.start].endswith(b"\n")
        if chunk.in_table and header and begins_row:
            assert chunk.heading_path[-1] == header or chunk.heading_path[-1].endswith("…")
        assert chunk.start == 0 or chunk.in_table


def test_each_chunk_of_a_csv_has_the_header_row(bert: Tokenizer) -> None:
    text = "the,quick\n" + "".join(f"fox,{at}\n" for at in range(100))
    document = ParserPool().parse_bytes("a.csv", text.encode())
    first, *rest = split(document, bert, max_tokens=40, overlap_tokens=8)
    assert first.text.startswith("the,quick\nfox,0")
    assert first.embedded_text == first.text
    assert len(rest) > 5
    for chunk in rest:
        assert chunk.text.startswith("fox,")
        assert chunk.embedded_text == f"the,quick\n{chunk.text}"
        assert text.encode()[chunk.start : chunk.end].decode() == chunk.text


def test_a_header_takes_half_of_a_chunk_at_most(bert: Tokenizer) -> None:
    document = _sheet([(",".join(["quick"] * 60), ["fox,1"] * 30)])
    chunk = split(document, bert, max_tokens=42, overlap_tokens=8)[-2]
    assert chunk.heading_path[-1].endswith(" …")
    assert 8 < len(bert.encode("\n".join(chunk.heading_path), add_special_tokens=False)) <= 20
    assert chunk.text.count("fox") > 2


def test_a_sheet_without_a_header_is_embedded_with_its_name(bert: Tokenizer) -> None:
    text = "quick\n" + "1,2\n" * 60
    document = ParsedDocument(
        "text/plain", text, "text", headings=(Heading(1, "quick", 0),), table_rows=(TableRows(0, ""),)
    )  # fmt: skip
    first, second, *_ = split(document, bert, max_tokens=40, overlap_tokens=0)
    assert not first.in_table
    assert second.embedded_text.startswith("quick\n1,2\n")


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("a.tsv", "\t")])
def test_a_file_that_is_read_in_segments_has_it_everywhere(
    bert: Tokenizer, tmp_path: Path, name: str, separator: str
) -> None:
    path = tmp_path / name
    header = separator.join(("the", "quick"))
    path.write_text(f"{header}\n" + "".join(f"fox{separator}{at}\n" for at in range(400)))
    text = open_large_text(path, ParserLimits(file_bytes=0, segment_bytes=400))
    text.content_hash()
    _, *rest = split_large(text, TokenCounter(bert), max_tokens=40, overlap_tokens=8)
    assert len(rest) > 20
    assert {one.embedded_text.split("\n")[0] for one in rest} == {header}


@pytest.mark.parametrize("separator", [" | ", ",", ";", "\t"])
def test_the_rest_of_a_long_row_has_its_first_cell_and_the_names_from_there(
    bert: Tokenizer, separator: str
) -> None:
    header = separator.join(("the", "quick", "brown"))
    row = separator.join(("fox 7", '"a, b; c"', "over " * 200))
    _, *rest = split(_sheet([(header, [row])], "sing"), bert, max_tokens=60, overlap_tokens=8)
    assert len(rest) > 3
    for chunk in rest[1:]:
        assert chunk.heading_path == ("sing", "fox 7", f"…{separator}brown")
        assert len(bert.encode(chunk.embedded_text)) <= 60


def test_a_wide_row_has_the_names_of_its_own_columns(bert: Tokenizer) -> None:
    header = ",".join(f"quick{at}" for at in range(60))
    row = ",".join(f"fox{at}" for at in range(60))
    chunks = split(_sheet([(header, [row] * 3)], "sing"), bert, max_tokens=80, overlap_tokens=0)
    rows = [one for one in chunks if one.text.lstrip(",").startswith("fox")]
    inside = [one for one in rows if not one.text.startswith("fox0,")]
    assert len(inside) > 5
    for chunk in inside:
        first = chunk.text.lstrip(",").split(",")[0]
        column = first.removeprefix("fox")
        assert chunk.heading_path[:2] == ("sing", "fox0")
        assert f"quick{column}" in chunk.heading_path[2].split(",")[1:3]


def test_a_cell_of_several_lines_has_the_names_of_its_row(bert: Tokenizer) -> None:
    text = 'the;quick;brown\nfox 7;"over, over\n' + "lazy, lazy\n" * 90 + '";1\nfox 8;over;2\n'
    document = ParserPool().parse_bytes("a.csv", text.encode())
    _, *rest = split(document, bert, max_tokens=60, overlap_tokens=0)
    inside = [one for one in rest if "lazy" in one.text]
    assert len(inside) > 3
    for chunk in inside[1:]:
        assert chunk.heading_path == ("fox 7", "…;quick;brown")


def test_the_delimiter_is_that_of_the_rows_where_the_header_has_two(bert: Tokenizer) -> None:
    text = "the, quick;brown\n" + f"fox 7;{'over ' * 90}\n" * 2
    document = ParserPool().parse_bytes("a.csv", text.encode())
    chunks = split(document, bert, max_tokens=60, overlap_tokens=0)
    inside = [one for one in chunks if one.text.startswith("over")]
    assert inside
    assert {one.heading_path for one in inside} == {("fox 7", "…;brown")}


_ROWS_BELOW = [f"fox {at}" for at in range(60)]
_TABLES = {
    "md": (
        "Text.\n\n| the | quick |\n|---|---|\n"
        + "".join(f"| {one} | 1 |\n" for one in _ROWS_BELOW),
        "| the | quick |",
    ),
    "html": (
        "<p>Text.<table><tr><th>the<th>quick"
        + "".join(f"<tr><td>{one}<td>1" for one in _ROWS_BELOW)
        + "</table>",
        "the | quick",
    ),
}


@pytest.mark.parametrize("kind", _TABLES)
def test_each_chunk_of_a_table_in_a_page_has_its_header_row(bert: Tokenizer, kind: str) -> None:
    markup, header = _TABLES[kind]
    prose = "brown " * 60
    markup += f"\n{prose}\n" if kind == "md" else f"<p>{prose}"
    document = ParserPool().parse_bytes(f"a.{kind}", markup.encode())
    chunks = split(document, bert, max_tokens=40, overlap_tokens=8)
    whole = document.text.encode()
    begins = [one for one in chunks[1:] if "fox" in one.text]
    assert len(begins) > 5
    for chunk in begins:
        assert chunk.embedded_text == f"{header}\n{chunk.text}"
        assert chunk.text.lstrip("| ").startswith("fox")
        assert whole[chunk.start : chunk.end].decode() == chunk.text
    behind = [one for one in chunks if "fox" not in one.text]
    assert len(behind) > 1
    assert not any(one.in_table for one in behind)


@pytest.mark.parametrize("bars", ["| {} | {} |", "|{}|{}|", "{} | {}"])
def test_the_rest_of_a_row_of_markdown_has_the_names_of_its_columns(
    bert: Tokenizer, bars: str
) -> None:
    text = "\n".join((bars.format("the", "quick"), bars.format("--", "--"), ""))
    text += bars.format("fox 7", "over " * 90) + "\n" + bars.format("fox 8", "brown") + "\n"
    document = ParserPool().parse_bytes("a.md", text.encode())
    chunks = split(document, bert, max_tokens=60, overlap_tokens=0)
    inside = [one for one in chunks if one.text.startswith("over")]
    assert inside
    for chunk in inside:
        label, names = chunk.heading_path
        assert (label, names.replace(" ", "")) == ("fox 7", "…|quick")


def test_a_long_markdown_file_has_it_everywhere(bert: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    prose = "\n" + "brown " * 400 + "\n"
    path.write_text(
        "| the | quick |\n|---|---|\n" + "".join(f"| fox | {at} |\n" for at in range(200)) + prose
    )
    text = open_large_text(path, ParserLimits(file_bytes=0, segment_bytes=500))
    text.content_hash()
    _, *rest = split_large(text, TokenCounter(bert), max_tokens=40, overlap_tokens=8)
    rows = [one for one in rest if "fox" in one.text]
    assert len(rows) > 20
    assert {one.embedded_text.split("\n")[0] for one in rows} == {"| the | quick |"}
    assert not any(one.in_table for one in rest if "fox" not in one.text)


def test_text_behind_a_table_has_the_headings_of_its_own_section(bert: Tokenizer) -> None:
    level = '<w:outlineLvl w:val="0"/>'
    rows = table(row("the", "quick"), row("over", "1"))
    body = par("fox", properties=level) + rows + par("brown " * 80) + par("sing", properties=level)
    document = ParserPool().parse_bytes("a.docx", docx(body + par("over " * 80)))
    chunks = split(document, bert, max_tokens=40, overlap_tokens=0)
    own = {one.text.split()[0]: one for one in chunks[1:]}
    assert own["brown"].heading_path == ("fox",)
    assert own["over"].heading_path == own["sing"].heading_path == ("sing",)
    assert not any(one.in_table for one in chunks)
