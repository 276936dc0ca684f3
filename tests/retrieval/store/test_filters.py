"""Filters in SQL against the same filters in Python."""

import operator
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.errors import InvalidRequest
from engine.retrieval.store.filters import attribute_kind, document_condition

_KEYS = ("a", "b", 'quoted "key"', "file")
_VALUES = st.one_of(
    st.sampled_from(["x", "y", "", "ü", "1"]), st.sampled_from([0, 1, 1.0, -2.5]), st.booleans()
)
_COMPARISONS = {
    "eq": operator.eq, "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le,
}  # fmt: skip


def comparisons():
    return st.one_of(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from([*_COMPARISONS, "ne"]),
                "key": st.sampled_from(_KEYS[:3]),
                "value": _VALUES,
            }
        ),
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["in", "nin"]),
                "key": st.sampled_from(_KEYS[:3]),
                "value": st.lists(_VALUES, min_size=1, max_size=3),
            }
        ),
        st.fixed_dictionaries(
            {
                "type": st.sampled_from([*_COMPARISONS, "ne"]),
                "key": st.just("file"),
                "value": st.sampled_from(["/d/0", "/d/2", "/d/"]),
            }
        ),
    )


def filters():
    return st.recursive(
        comparisons(),
        lambda inner: st.fixed_dictionaries(
            {
                "type": st.sampled_from(["and", "or"]),
                "filters": st.lists(inner, min_size=1, max_size=3),
            }
        ),
        max_leaves=6,
    )


def matches(where, attributes, path):
    """The same in Python: values of different kinds are never equal nor ordered."""
    kind = where["type"]
    if kind in ("and", "or"):
        results = [matches(one, attributes, path) for one in where["filters"]]
        return all(results) if kind == "and" else any(results)
    if kind in ("ne", "nin"):
        return not matches({**where, "type": "eq" if kind == "ne" else "in"}, attributes, path)
    if kind == "in":
        return any(
            matches({**where, "type": "eq", "value": one}, attributes, path)
            for one in where["value"]
        )
    value = path if where["key"] == "file" else attributes.get(where["key"])
    if value is None or attribute_kind(value)[0] != attribute_kind(where["value"])[0]:
        return False
    if isinstance(value, str):  # SQLite orders text by its UTF-8
        return _COMPARISONS[kind](value.encode(), where["value"].encode())
    return _COMPARISONS[kind](value, where["value"])


@given(
    st.lists(st.dictionaries(st.sampled_from(_KEYS[:3]), _VALUES), min_size=1, max_size=5),
    filters(),
)
def test_sql_and_python_agree(documents, where):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE document (id INTEGER PRIMARY KEY, path TEXT)")
    connection.execute("CREATE TABLE attribute (document_id, key TEXT, kind TEXT, value)")
    for number, attributes in enumerate(documents):
        connection.execute("INSERT INTO document VALUES (?, ?)", (number, f"/d/{number}"))
        for key, value in attributes.items():
            connection.execute(
                "INSERT INTO attribute VALUES (?, ?, ?, ?)", (number, key, *attribute_kind(value))
            )

    condition, parameters = document_condition(where)
    found = connection.execute(
        f"SELECT id FROM document WHERE {condition} ORDER BY id", parameters
    ).fetchall()
    connection.close()

    expected = [
        n for n, attributes in enumerate(documents) if matches(where, attributes, f"/d/{n}")
    ]
    assert [row[0] for row in found] == expected


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("x", "must be an object"),
        ({}, "type must be one of"),
        ({"type": "like", "key": "a", "value": 1}, "type must be one of"),
        ({"type": "eq", "value": 1}, "needs a key"),
        ({"type": "eq", "key": "a"}, "must be text, a number"),
        ({"type": "eq", "key": "a", "value": [1]}, "must be text, a number"),
        ({"type": "eq", "key": "a", "value": 1, "extra": 1}, "has no field extra"),
        ({"type": "in", "key": "a", "value": "x"}, "must be a list"),
        ({"type": "in", "key": "a", "value": []}, "must be a list"),
        ({"type": "nin", "key": "a", "value": [None]}, "values of nin a"),
        ({"type": "and", "filters": []}, "needs filters"),
        ({"type": "eq", "key": "file", "value": 1}, "file must be compared with text"),
        ({"type": "eq", "key": "a", "value": float("inf")}, "finite number"),
        ({"type": "in", "key": "a", "value": list(range(600))}, "more than 512"),
    ],
)
def test_a_malformed_filter_is_explained(where, message):
    with pytest.raises(InvalidRequest, match=message):
        document_condition(where)


def test_deep_nesting_is_refused():
    where = {"type": "eq", "key": "a", "value": 1}
    for _ in range(20):
        where = {"type": "and", "filters": [where]}
    with pytest.raises(InvalidRequest, match="nested"):
        document_condition(where)
