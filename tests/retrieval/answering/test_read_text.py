from hypothesis import given
from hypothesis import strategies as st

from engine.retrieval.answering.numbered_passage import number_passages
from engine.retrieval.answering.read_text import passage_read_text, read_text
from tests.retrieval.answering.passages import passage

TABLE = """Opening hours
Branch | Opens | Manager
Mill Lane | 09:00 |
Airport | 05:15 | Rui Matos

Closed at Christmas."""


def test_rows_have_the_names_of_their_columns_between_the_prose():
    assert passage_read_text(passage(TABLE)).split("\n") == [
        "Opening hours",
        "Branch: Mill Lane; Opens: 09:00",
        "Branch: Airport; Opens: 05:15; Manager: Rui Matos",
        "Closed at Christmas.",
    ]


def test_a_column_without_a_name_has_its_cell_alone():
    text = " | Customers\nOdense | 2875\nRibe | 310"
    assert passage_read_text(passage(text)) == "Odense; Customers: 2875\nRibe; Customers: 310"


def test_the_header_of_a_passage_that_begins_below_it_names_its_columns():
    (source,) = number_passages(
        [passage("Apple | 2", heading_path=("Prices", "Fruit | Price"), in_table=True)]
    )
    assert read_text(source) == "Fruit: Apple; Price: 2"


def test_rows_without_a_header_and_prose_are_read_as_they_are():
    for text in ("Apple | 2", "1 | 2\n3 | 4", "No table at all.\n\nReally."):
        assert passage_read_text(passage(text)) == text


def test_names_that_are_much_longer_than_the_values_are_read_once():
    names = " | ".join(f"a very long name of column {at}" for at in range(4))
    rows = "\n".join(f"{at} | {at + 1} | {at + 2} | x" for at in range(30))
    assert passage_read_text(passage(f"{names}\n{rows}")) == f"{names}\n{rows}"


@given(
    st.lists(st.lists(st.text("ab1", min_size=1, max_size=4), min_size=3, max_size=3), max_size=6)
)
def test_no_cell_is_lost(rows):
    text = "\n".join(" | ".join(row) for row in rows)
    read = passage_read_text(passage(text))
    for word in text.replace("|", " ").split():
        assert word in read
