from collections.abc import Iterable

from engine.retrieval.parsing.block_writer import BlockWriter
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.text_builder import TextBuilder
from engine.retrieval.parsing.text_flow import Block


def _rows(*rows: str, named: int = 0) -> list[Block]:
    return [
        Block(" | ".join(row), cells=tuple(row), tight=at > 0, names_columns=at < named)
        for at, row in enumerate(row.split("|") for row in rows)
    ]


def _written(*parts: Iterable[Block]) -> Extracted:
    builder = TextBuilder(1000)
    writer = BlockWriter(builder)
    for part in parts:
        writer.write(part)
    writer.finish()
    return builder.extracted()


def _headers(found: Extracted) -> list[tuple[str | None, str]]:
    """Of each header row what it is and the line at which it begins to hold."""
    return [
        (one.text, found.text[one.start :].strip().partition("\n")[0]) for one in found.row_headers
    ]


def test_headings_are_sections_and_rows_breaks() -> None:
    found = _written([Block("One", 1, "One"), *_rows("a|b", "c|d"), Block("End")])
    assert found.text == "One\n\na | b\nc | d\n\nEnd"
    assert found.breaks == (5, 11)
    assert [(one.title, one.start) for one in found.headings] == [("One", 0)]


def test_the_first_row_names_the_columns_of_those_below_it() -> None:
    found = _written(_rows("Port|Fare", "Oban|12", "Mull|9", "Iona|4"), [Block("End")])
    assert _headers(found) == [("Port | Fare", "Oban | 12"), (None, "End")]


def test_a_document_may_say_how_many_rows_do() -> None:
    found = _written(_rows("2024|2025", "1|2", "3|4", "5|6", named=2))
    assert _headers(found)[0] == ("2024 1 | 2025 2", "3 | 4")


def test_each_table_has_its_own() -> None:
    found = _written(
        _rows("Port|Fare", "Oban|12"), _rows("1|2", "3|4"), _rows("Day|Boats", "Mon|4")
    )
    assert _headers(found) == [
        ("Port | Fare", "Oban | 12"),
        (None, "1 | 2"),
        ("Day | Boats", "Mon | 4"),
        (None, ""),
    ]


def test_a_row_alone_names_nothing() -> None:
    assert _written(_rows("Port|Fare", named=1)).row_headers == ()
