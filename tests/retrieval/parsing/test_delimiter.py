import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.retrieval.parsing.delimiter import DELIMITERS, delimiter_of, fields_of

_CELL = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=12)


@pytest.mark.parametrize(
    ("records", "delimiter"),
    [
        (["a,b", "1,2"], ","),
        (["a;b", "1,5;2,5"], ";"),
        (["a, first;b", "x;1", "y;2"], ";"),
        (['"a, first";b', "x;1"], ";"),
        (["a\tb, c", "x\t1"], "\t"),
        (["a|b", "x|1"], "|"),
        (["Sales, 2026", "", "a;b", "x;1", "y;2"], ";"),
        (["a", "b"], ""),
        ([], ""),
    ],
)
def test_the_delimiter_divides_most_records_alike(records: list[str], delimiter: str) -> None:
    assert delimiter_of(records) == delimiter


def test_it_separates_the_names_of_a_known_header() -> None:
    prose = ["it rained, then", "it snowed, then", "it was dry, then"]
    assert delimiter_of(prose) == ","
    assert delimiter_of(prose, "Day;Weather") == ";"
    assert delimiter_of(["x;1"], "Day, then;Weather") == ";"
    assert delimiter_of(prose, "Weather") == ""


def test_a_field_may_be_longer_than_the_module_reads() -> None:
    long = "x" * (csv.field_size_limit() + 1)
    assert fields_of(f"a,{long},b", ",") == ["a", long, "b"]


@given(
    rows=st.lists(st.lists(_CELL, min_size=2, max_size=2), min_size=1),
    delimiter=st.sampled_from(DELIMITERS),
)
def test_fields_are_those_that_were_written(rows: list[list[str]], delimiter: str) -> None:  # fmt: skip
    for row in rows:
        file = io.StringIO()
        csv.writer(file, delimiter=delimiter).writerow(row)
        assert fields_of(file.getvalue(), delimiter) == row
