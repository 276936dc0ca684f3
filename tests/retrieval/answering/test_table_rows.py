"""Rows of tables as statements, and as what supports a sentence."""

import pytest

from engine.retrieval.answering.numbered_passage import NumberedPassage, number_passages
from engine.retrieval.answering.support import SupportJudge
from engine.retrieval.answering.table_rows import tables_of
from tests.retrieval.answering.passages import embed, passage

BARS = "Week | Captain | Backup\n27 | Mira Holt | Jonas Brandt\n29 | Priya Nair | Mira Holt\n"
MARKDOWN = (
    "| Week | Captain | Backup |\n|---|:---:|--:|\n| 27 | Mira Holt | Jonas Brandt |\n"
    "| 29 | Priya Nair | Mira Holt |\n"
)
TABS = BARS.replace(" | ", "\t")
CSV = BARS.replace(" | ", ",")


def tables(text: str, file: str = "/docs/a.txt", **fields: object):
    return tables_of(NumberedPassage.of(1, passage(text, file=file, **fields)))


@pytest.mark.parametrize(
    ("text", "file"),
    [(BARS, "a.txt"), (MARKDOWN, "a.md"), (TABS, "a.tsv"), (CSV, "a.csv"), (CSV.replace(",", ";"), "b.CSV")],
)  # fmt: skip
def test_a_row_is_a_statement_of_its_cells_with_their_columns(text: str, file: str):
    found = tables(text, file)
    assert [one.statement for one in found.rows] == [
        "Week: 27, Captain: Mira Holt, Backup: Jonas Brandt",
        "Week: 29, Captain: Priya Nair, Backup: Mira Holt",
    ]
    lines = [text[one.start : one.end] for one in found.rows]
    assert lines == text.rstrip("\n").split("\n")[-2:]


def test_prose_around_a_table_is_no_row_and_rows_are_no_prose():
    text = f"The captains are these\n{BARS}\nNobody else is."
    found = tables(text)
    assert len(found.rows) == 2
    prose = [text[start:end].strip() for start, end in found.prose]
    assert prose == ["The captains are these", "Nobody else is."]


def test_a_table_without_a_header_has_none():
    found = tables("1 | 2\n3 | 4\n")
    assert [one.statement for one in found.rows] == ["1, 2", "3, 4"]


def test_empty_and_missing_cells_keep_their_columns():
    found = tables("Week | Captain | Backup\n27 |  | Jonas\n28 | Mira\n29 | Mira | Jonas | late\n")
    assert [one.statement for one in found.rows] == [
        "Week: 27, Backup: Jonas",
        "Week: 28, Captain: Mira",
        "Week: 29, Captain: Mira, Backup: Jonas, late",
    ]


def test_a_header_can_be_the_heading_of_the_rows():
    found = tables("27 | Mira Holt\n29 | Priya Nair\n", heading_path=("Plan", "Week | Captain"))
    assert found.rows[0].statement == "Week: 27, Captain: Mira Holt"


@pytest.mark.parametrize(
    ("header", "rows", "file"),
    [
        ("Town,Mayor", "Kiel,Ada Berg\nBonn,Jo Lund\n", "a.csv"),
        ('"Town, quarter";Mayor', "Kiel, Mitte;Ada Berg\nBonn, Süd;Jo Lund\n", "a.csv"),
        ("Town | Mayor", "Kiel | Ada Berg\nBonn | Jo Lund\n", "a.xlsx"),
        ("Town\tMayor", "Kiel\tAda Berg\nBonn\tJo Lund\n", "a.tsv"),
    ],
)
def test_rows_that_begin_inside_of_a_table_belong_to_its_header(header: str, rows: str, file: str):
    found = tables(rows, file, heading_path=(header,), in_table=True)
    first, second = found.rows
    assert first.statement.endswith("Mayor: Ada Berg")
    assert first.statement.startswith("Town")
    assert second.statement.endswith("Mayor: Jo Lund")


def test_a_csv_header_that_is_a_heading_names_its_columns():
    (row,) = tables("Kiel,12\n", "a.csv", heading_path=("Town,Turnover",)).rows
    assert row.statement == "Town: Kiel, Turnover: 12"


@pytest.mark.parametrize(
    "text", ["", "|", "||\n||", "a | b", "\t\n\t", '"a,b', "|---|---|\n", "| \\| |"]
)
def test_any_text_is_read(text: str):
    for file in ("a.txt", "a.csv", "a.md"):
        found = tables(text, file)
        assert all(0 <= one.start <= one.end <= len(text) for one in found.rows)


@pytest.mark.parametrize(
    ("separator", "file"), [(" | ", "a.xlsx"), (",", "a.csv"), (";", "b.csv"), ("\t", "a.tsv")]
)
def test_whole_rows_behind_the_end_of_a_row_keep_their_columns(separator: str, file: str):
    header = separator.join(("…", "Mayor", "Turnover"))
    lines = (
        ("Ada Berg", "12"),
        ("Kiel", "north", "Bo Adler", "7"),
        ("Bonn", "west", "Cy Lund", "8"),
    )
    text = "".join(f"{separator.join(line)}\n" for line in lines)
    first, second, third = tables(text, file, heading_path=("Oslo", header), in_table=True).rows
    assert first.statement == "Mayor: Ada Berg, Turnover: 12"
    assert second.statement == "Kiel, north, Mayor: Bo Adler, Turnover: 7"
    assert third.statement == "Bonn, west, Mayor: Cy Lund, Turnover: 8"


def test_rows_have_no_names_if_nothing_tells_their_columns():
    text = "Ada Berg | 12\nKiel | north\nBonn | west\n"
    rows = tables(text, "a.xlsx", heading_path=("Oslo", "… | Mayor | Turnover"), in_table=True).rows
    assert [one.statement for one in rows] == [
        "Mayor: Ada Berg, Turnover: 12",
        "Kiel, north",
        "Bonn, west",
    ]


@pytest.mark.parametrize(
    "names", [("Quarter", "Q1", "Q2"), ("Test", "H2", "O2"), ("Region", "2025", "2026")]
)
def test_names_that_end_with_a_number_are_a_header(names: tuple[str, ...]):
    (row,) = tables(f"{' | '.join(names)}\nnorth | 5 | 6\n").rows
    assert row.header == names


def test_two_rows_can_name_the_columns():
    text = "| | 2025 | |\n| Name | Q1 | Q2 |\n| Ada | 5 | 6 |\n| Bo | 7 | 8 |\n"
    assert [one.statement for one in tables(text).rows] == [
        "Name: Ada, 2025 Q1: 5, 2025 Q2: 6",
        "Name: Bo, 2025 Q1: 7, 2025 Q2: 8",
    ]


def judge(text: str, **fields: object) -> SupportJudge:
    return SupportJudge(number_passages([passage(text, **fields)]), embed)


@pytest.mark.parametrize("text", [BARS, MARKDOWN, TABS])
def test_a_row_supports_the_sentence_made_of_it(text: str):
    (found,) = judge(text).supports("The captain of week 27 is Mira Holt.")
    assert "27" in text[found.start : found.end]
    assert "29" not in text[found.start : found.end]
    assert judge(text).supports("In week 29 Priya Nair is captain and Mira Holt is the backup.")


@pytest.mark.parametrize(
    "claim",
    [
        "The captain of week 27 is Priya Nair.",  # of another row
        "The captain of week 27 is Jonas Brandt.",  # of another column
        "The captain of week 28 is Mira Holt.",
        "The captain of week 27 is not Mira Holt.",
        "The captain of week 27 is Bo Adler.",
        "Priya's backup is Jonas Brandt.",
    ],
)
def test_a_row_does_not_support_what_it_does_not_say(claim: str):
    assert judge(BARS).supports(claim) == []
    assert judge(MARKDOWN).supports(claim) == []


def test_the_heading_of_a_table_counts_for_its_rows():
    text = "Route | Departure | Price\nKiel – Oslo | 14:00 | 89 EUR\nRostock – Malmö | 07:45 | 54 EUR\n"
    found = judge(text, heading_path=("Ferries 2026",))
    assert found.supports(
        "In 2026 the ferry of the route Rostock – Malmö has its departure at 7:45 am."
    )
    assert found.supports("The ferry of the route Kiel – Oslo has its departure at 3 pm.") == []
    assert found.supports("The ferry of the route Kiel – Oslo has its departure at 2:00 pm.")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("2026-05-14", "14 May 2026"), ("2026-05-14", "Thursday, May 14th"), ("14.05.2026", "14 May 2026"),
        ("1,200.00 EUR", "1200 EUR"), ("19:30", "7:30 PM"), ("15 %", "15%"), ("15GB", "15 GB"),
    ],
)  # fmt: skip
def test_values_are_compared_however_they_are_written(cell: str, said: str):
    text = f"Review of the plan | Value\nThe first review | {cell}\nThe second review | none\n"
    assert judge(text).supports(f"The value of the first review of the plan is {said}.")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("2026-05-14", "14 June 2026"),
        ("2026-05-14", "Friday, May 14th"),
        ("19:30", "7:30 AM"),
        ("1,5", "15"),
    ],
)
def test_other_values_are_told_apart(cell: str, said: str):
    text = f"Review of the plan | Value\nThe first review | {cell}\nThe second review | none\n"
    assert judge(text).supports(f"The value of the first review of the plan is {said}.") == []


BUDGET = "Department | 2025 | 2026\nSales | 880,000 | 845,000\nSupport | 410,000 | 455,000\n"


def test_years_can_name_columns():
    assert tables(BUDGET).rows[0].statement == "Department: Sales, 2025: 880,000, 2026: 845,000"
    assert judge(BUDGET).supports("The department Sales had 845,000 in 2026.")
    assert judge(BUDGET).supports("The department Sales had 880,000 in 2026.") == []
    assert judge(BUDGET).supports("The department Sales had 455,000 in 2026.") == []


def test_a_row_with_the_value_may_have_other_words_than_the_sentence():
    text = (
        "Route | Departure | Price\nKiel - Oslo | 14:00 | 89 EUR\nKiel - Malmo | 11:30 | 61 EUR\n"
    )

    def alike(texts):
        return embed([texts[0]] * len(texts))  # as a model of meaning sees them

    found = SupportJudge(number_passages([passage(text)]), alike)
    assert found.supports("The ferry from Kiel to Oslo leaves at 14:00.")
    assert found.supports("The ferry from Kiel to Oslo leaves at 11:30.") == []
    assert found.supports("The ferry from Kiel to Bergen leaves at 14:00.") == []
    assert found.supports("The ferry is painted white and leaves daily.") == []
