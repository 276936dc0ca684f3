import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.retrieval.search.lexical_query import MAX_TERMS, lexical_query, query_terms

ROWS = {
    1: "The default port of the server is 8000.",
    2: "日本語の文法はとても面白いです。",
    3: "हिन्दी भाषा में स्वर और व्यंजन होते हैं।",
    4: "Call getaddrinfo(host, port) to resolve a café's name.",
    5: "한국어의 조사는 명사에 붙는다",
}


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    database = sqlite3.connect(":memory:")
    for name, tokenizer in (("words", "unicode61"), ("trigrams", "trigram")):
        database.execute(f"CREATE VIRTUAL TABLE {name} USING fts5(text, tokenize='{tokenizer}')")
        database.executemany(f"INSERT INTO {name}(rowid, text) VALUES (?, ?)", ROWS.items())
    yield database
    database.close()


def found(index: sqlite3.Connection, text: str) -> list[int]:
    query = lexical_query(text)
    hits: list[int] = []
    for table, match in (("words", query.words), ("trigrams", query.trigrams)):
        if match:
            rows = index.execute(
                f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rank", (match,)
            )
            hits += [row for (row,) in rows]
    return hits


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("Which port does the server use?", 1),
        ("文法", None),  # two characters are no trigram
        ("日本語の文法", 2),
        ("面白いですか", 2),
        ("हिन्दी में व्यंजन", 3),
        ("cafe", 4),
        ("getaddrinfo()", 4),
        ("한국어", 5),
    ],
)
def test_finds_the_row_in_its_script(index: sqlite3.Connection, text: str, row: int | None):
    assert found(index, text)[:1] == ([] if row is None else [row])


@pytest.mark.parametrize(
    "text",
    ['"', "a AND", "NEAR(", "text:port", "port* ^server", "NOT port", "{text} : x", "a - b", "'; DROP", "\x00"],
)
def test_operators_are_text(index: sqlite3.Connection, text: str):
    found(index, text)  # raises sqlite3.OperationalError if anything was an operator


@given(text=st.text())
def test_any_text_is_a_valid_query(index: sqlite3.Connection, text: str):
    found(index, text)


def test_frequent_words_are_looked_up_only_if_there_is_nothing_else():
    assert lexical_query("What is the port?").words == '"port"'
    assert lexical_query("What is it?").words == '"what" OR "is" OR "it"'


def test_a_word_of_two_parts_is_a_phrase(index: sqlite3.Connection):
    assert found(index, "default_port") == found(index, "default port")


def test_the_number_of_terms_is_bounded():
    query = lexical_query(" ".join(f"word{n}" for n in range(1000)) + "文法" * 1000)
    assert query.words.count(" OR ") == MAX_TERMS - 1


def test_nothing_to_look_up_is_false():
    assert not lexical_query("?! …")
    assert lexical_query("port")


def test_terms_are_distinct_and_without_frequent_words():
    assert query_terms("What is the Port, the port?") == ["port"]
