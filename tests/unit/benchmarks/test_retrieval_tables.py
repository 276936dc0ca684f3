"""`benchmarks/retrieval_tables.py`: a row for each figure."""

from benchmarks.retrieval_tables import answer_tables, latency_tables, quality_tables, rate_tables

FIGURES = {"hit@1": 0.5, "hit@5": 0.75, "nDCG@10": 0.625}
APART = {"mean": 0.1, "low": 0.05, "high": 0.15}


def cells(table):
    return list(zip(*(column.cells for column in table.columns), strict=True))


def test_quality_has_a_row_for_each_mode_and_each_comparison():
    modes, apart = quality_tables(
        {
            "queries": {"gist": 2, "written": 0},
            "chunks": 9,
            "figures": {"Pravāha, hybrid": {"all": FIGURES, "gist": FIGURES}},
            "compared": {"best peer": "x", "Pravāha, hybrid less x": dict.fromkeys(FIGURES, APART)},
        }
    )
    assert cells(modes) == [("Pravāha, hybrid", "0.500", "0.750", "0.625", "0.625")]
    assert cells(apart) == [("Pravāha, hybrid less x", *["+0.100 [+0.050, +0.150]"] * 3)]


def test_rates_have_a_row_for_each_peer_and_each_ratio():
    rate = {"best": 4.0, "median": 3.0, "per CPU second": 2.0}
    rates, ratios = rate_tables(
        {
            "texts": 1,
            "figures": {"a": {"texts/s": rate, "least cosine": 0.99}},
            "ratios": {"Pravāha / a": {"seconds": 3.0, "cpu_seconds": 2.0}},
        }
    )
    assert cells(rates) == [("a", "4.0", "3.0", "2.0", "", "0.99000")]
    assert cells(ratios) == [("Pravāha / a", "3.00", "2.00")]


def test_latency_has_a_row_for_each_mode():
    found = {"p50 ms": 5.0, "p95 ms": 9.0, "median CPU ms": 4.0, "queries": 20}
    (table,) = latency_tables({"chunks": 9, "figures": {"a, dense": found}})
    assert cells(table) == [("a, dense", "5.0", "9.0", "4.0", "20")]


def test_answers_show_what_has_no_share_as_nothing():
    cited, outcomes, first = answer_tables(
        {
            "citations": {"citations": 12, "exist": 1.0, "quotes open": None},
            "check of labelled sentences": {"kept": {"value": 0.0}},
            "questions": {"one hop": 3},
            "outcomes": {"one hop": {"answered": 1.0}},
            "first token": {"cold": {"p50": 200.0, "p95": 300.0, "tokens": 400.0, "cached": 0.5}},
        }
    )
    assert cells(cited) == [
        ("citations", "12"),
        ("exist", "1.000"),
        ("quotes open", ""),
        ("labelled sentences kept, changed: value", "0.000"),
    ]
    assert cells(outcomes) == [("one hop", "3", "1.000", "0.000", "0.000")]
    assert cells(first) == [("cold", "200", "300", "400", "0.500")]
