"""Rows of Markdown tables are breaks, and belong to their header row."""

import pytest

from engine.retrieval.parsing.markdown import markdown_outline

TABLE = "| Name | City |\n|---|:-:|\n| Ada | Oslo |\n| Bo | Rome |\n"


def _headers(text: str) -> list[tuple[str | None, str]]:
    """The header rows, each with the line at which it begins to hold."""
    found = markdown_outline(text).row_headers
    return [(one.text, text[one.start :].partition("\n")[0]) for one in found]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        (TABLE, "| Name | City |"),
        (TABLE.replace("\n", "\r\n"), "| Name | City |"),
        ("Name | City\n--- | ---\nAda | Oslo\n", "Name | City"),
        ("|Name|City|\n|-|-|\n|Ada|Oslo|", "|Name|City|"),
        ("- a list\n\n    | A \\| B | C |\n    |--|--|\n    | 1 | 2 |\n", "| A \\| B | C |"),
        ("| Name |\n|---|\n| Ada |\n", "| Name |"),
    ],
)
def test_the_header_row_is_above_the_line_of_dashes(text: str, header: str) -> None:
    assert _headers(text)[0][0] == header


@pytest.mark.parametrize(
    "end", ["", "\nText | more\n", "# Title\n", "> said | so\n", "```\na | b\n```\n"]
)
def test_a_table_ends_with_its_rows(end: str) -> None:
    text = f"Before\n\n{TABLE}{end}"
    found = markdown_outline(text)
    assert [text[one:].partition("\n")[0] for one in found.breaks] == [
        "| Ada | Oslo |",
        "| Bo | Rome |",
    ]
    assert _headers(text) == [("| Name | City |", "| Ada | Oslo |"), (None, end.partition("\n")[0])]


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{TABLE}```\n",
        "---\na | b: c\n---|---\n---\n",
        "Name | City\n---\nAda\n",
        "Name | City | Zip\n---|---\nAda | Oslo\n",
        "| Name | City |\n|---|---|\n",
        "a | b\n: | :\n",
    ],
)
def test_other_bars_and_dashes_are_no_table(text: str) -> None:
    assert markdown_outline(text).row_headers == ()


def test_headings_around_tables_stay() -> None:
    text = f"# One\n{TABLE}# Two\n\n{TABLE}\nThree\n---\n"
    assert [one.title for one in markdown_outline(text).headings] == ["One", "Two", "Three"]
    assert [one.text for one in markdown_outline(text).row_headers] == ["| Name | City |", None] * 2


def test_a_later_part_may_begin_inside_of_a_table() -> None:
    text = "| Bo | Rome |\n\nText\n---\n"
    found = markdown_outline(text, goes_on=True, in_table=True)
    assert found.breaks == (0,)
    assert [(one.text, one.start) for one in found.row_headers] == [(None, 14)]
    assert [one.title for one in found.headings] == ["Text"]
