from collections.abc import Callable

import pytest

from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.rows import rows_outline

Parse = Callable[[str, bytes], ParsedDocument]


def _header(text: str) -> tuple[str, str] | None:
    """The header row, and the first row below it."""
    found = rows_outline(text, named=True).row_headers
    assert len(found) <= 1
    return (found[0].text, text[found[0].start :].split("\n")[0]) if found else None


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("Fruit,Price\nApple,2.5\n", ("Fruit,Price", "Apple,2.5")),
        ("Fruit;Price\r\nApple;2,5\r\n", ("Fruit;Price", "Apple;2,5\r")),
        ("Fruit\tPrice\nApple\t2.5", ("Fruit\tPrice", "Apple\t2.5")),
        ("a|b\nx|1\n", ("a|b", "x|1")),
        ('"The ""name""","a\nb"\nx,1\n', ('"The ""name""","a b"', "x,1")),
        ("Region,2023,2024\nNorth,10,20\n", ("Region,2023,2024", "North,10,20")),
        ("Name,City\nAda,Oslo\nBo,Rome\n", ("Name,City", "Ada,Oslo")),
        ("sep=;\nFruit;Price\nApple;2\nPear;3\n", ("Fruit;Price", "Apple;2")),
        ("Sales 2026\n\nFruit,Price\nApple,2\nPear,3\n", ("Fruit,Price", "Apple,2")),
        ("Sales;;\n;;\nName;Q1;Q2\nAda;1;2\nBo;3;4\n", ("Name;Q1;Q2", "Ada;1;2")),
        (",Q1,Q2\nNorth,1,2\n", (",Q1,Q2", "North,1,2")),
        ("email\na@b.c\nd@e.f\n", ("email", "a@b.c")),
    ],
)
def test_the_header_row(text: str, header: tuple[str, str]) -> None:
    assert _header(text) == header


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4\n",
        "2023,2024\n1,2\n",
        "Apple,2.5\nPear,3\n",
        "2026-06-03,Rent,1200\n2026-06-04,Food,20\n",
        "Fruit,Price\n",
        "Fruit,Price",
        "\n\n",
        '"never closed\n1,2\n3,4\n',
    ],
)
def test_rows_without_a_header(text: str) -> None:
    assert _header(text) is None


def test_json_lines_have_none(parse: Parse) -> None:
    assert not parse("a.jsonl", b'{"a": "x"}\n{"a": "y"}\n').table_rows
    assert parse("a.tab", b"Fruit\tPrice\nApple\t2\n").table_rows[0].header == "Fruit\tPrice"
    assert parse("a.csv", b"\xef\xbb\xbfF\xc3\xa4rbe,b\nx,1\n").table_rows[0].start == 12
