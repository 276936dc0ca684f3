"""The arithmetic of published figures: rates, ratios to peers, shares of the roofline, quality."""

import math

import numpy as np
import pytest

from benchmarks.engine_turns import lowest_ratios, throughput
from benchmarks.fact_answers import citations, declined_by_kind, outcomes, right, supported
from benchmarks.fact_documents import Question
from benchmarks.http_streams import Turns
from benchmarks.known_items import KnownItem
from benchmarks.measurements import Measurements, shares
from benchmarks.peer_ratios import equal_runs, peer_ratios
from benchmarks.retrieval_quality import compared
from benchmarks.retrieval_speed import nearness, percentiles, rates, ratios
from benchmarks.search_quality import DEPTH, Place, difference, figures, rank_of
from benchmarks.serve_rates import CONTEXT, Answered, Outcome, arrivals
from benchmarks.synthetic_models import LLAMA_SHAPES, SHAPES

# -- engines beside their peers --------------------------------------------------------------------


def test_decode_is_the_long_run_less_the_prompts_of_the_short_one():
    measurements = Measurements("e", "1", short={4: [1.0, 0.5]}, long={4: [1.5, 3.0]})
    assert measurements.best("4") == pytest.approx(4 * 64 / (1.5 - 0.5))
    assert measurements.median("4") == pytest.approx(4 * 64 / (2.25 - 0.75))
    assert measurements.best("prefill") == pytest.approx(4 * 64 / 0.5)


def test_prefill_is_that_of_the_best_batch():
    measurements = Measurements(
        "e", "1", short={4: [0.5], 16: [1.0, 9.0]}, long={4: [1.0], 16: [2.0]}
    )
    assert measurements.best("prefill") == pytest.approx(16 * 64 / 1.0)
    assert measurements.fastest_prefill_batch() == 16


def test_single_counts_its_prompt_in():
    assert Measurements("e", "1", single=[2.0, 1.0, 4.0]).figures() == {
        "single": {"best": 128.0, "median": 64.0}
    }


def test_what_was_not_measured_has_no_figure_and_noise_gives_no_negative_one():
    assert Measurements("e", "1").figures() == {}
    assert Measurements("e", "1", short={4: [2.0]}, long={4: [1.0]}).best("4") is None


def test_the_ratio_is_over_the_best_peer_of_that_column_for_bests_and_for_medians():
    ours = Measurements("ours", "1", single=[1.0, 3.0], short={4: [0.1]}, long={4: [0.2]})
    steady = Measurements("steady", "1", single=[4.0, 4.0])
    fast_once = Measurements("fast once", "1", single=[2.0, 10.0])
    (ratio,) = peer_ratios(ours, [steady, fast_once]).values()
    assert (ratio.best, ratio.best_peer) == (2.0, "fast once")
    assert (ratio.median, ratio.median_peer) == (2.0, "steady")


def test_a_peer_with_fewer_runs_is_compared_with_as_many_of_ours():
    """Our best of six over a peer's best of two would be 4; of the first two runs it is 2."""
    ours = Measurements("ours", "1", single=[1.0, 1.2, 0.5, 0.5, 0.5, 0.5])
    peer = Measurements("peer", "1", single=[2.0, 2.4])
    ratio = peer_ratios(ours, [peer])["single"]
    assert (ratio.best, ratio.best_runs) == (2.0, 2)
    assert (ratio.median, ratio.median_runs) == (pytest.approx(2.0), 2)


def test_equal_runs_hold_for_every_batch_and_so_for_the_prefill():
    ours = Measurements(
        "ours",
        "1",
        short={4: [0.4, 0.1], 16: [0.8], 64: [0.1]},
        long={4: [1.4, 0.6], 16: [1.8], 64: [0.5]},
    )
    peer = Measurements("peer", "1", short={4: [0.8], 16: [1.6]}, long={4: [2.8], 16: [3.6]})
    own, other = equal_runs(ours, peer)
    assert own.short == {4: [0.4], 16: [0.8]}
    assert {n: len(runs) for n, runs in own.long.items()} == {4: 1, 16: 1}
    assert other == peer
    assert peer_ratios(ours, [peer])["prefill"].best == pytest.approx(2.0)


def test_a_share_is_the_least_time_of_a_token_times_their_rate():
    ours = Measurements("ours", "1", single=[1.0, 3.0])
    assert shares(ours, {"single": 0.005, "4": 1.0}) == {
        "single": {"best": pytest.approx(0.64), "median": pytest.approx(0.32)}
    }


def test_throughput_is_of_the_difference_of_the_fastest_and_of_the_median_runs():
    assert throughput(64, [1.0, 2.0, 9.0], [3.0, 9.0, 10.0]) == {
        "best": 32.0,
        "median": pytest.approx(64 / 7),
    }
    assert throughput(64, [2.0], [1.0]) == {"best": None, "median": None}


def test_the_ratio_is_over_the_fastest_peer_whose_figure_is_known():
    ours = {"best": 8.0, "median": 6.0}
    peers = [{"best": 2.0, "median": None}, {"best": 4.0, "median": 3.0}]
    assert lowest_ratios(ours, peers) == {"best": 2.0, "median": 2.0}
    assert lowest_ratios(ours, []) == {}


@pytest.mark.parametrize(
    ("shape", "millions"),
    [
        (SHAPES["0.5B"], 494.0),
        (SHAPES["1.5B"], 1543.7),
        (LLAMA_SHAPES["1B"], 1235.8),
        (LLAMA_SHAPES["3B"], 3212.7),
    ],
    ids=lambda shape: getattr(shape, "name", ""),
)
def test_the_shapes_have_as_many_parameters_as_the_models(shape, millions):
    layer = shape.hidden * (2 * shape.hidden + 2 * shape.kv_size + 3 * shape.feed_forward)
    vectors = 2 * shape.hidden + (shape.hidden + 2 * shape.kv_size if shape.biases else 0)
    total = shape.layers * (layer + vectors) + shape.vocabulary * shape.hidden + shape.hidden
    assert total / 1e6 == pytest.approx(millions, abs=0.1)


# -- retrieval ----------------------------------------------------------------------------------


def taken(seconds, cpu_seconds):
    return {"seconds": seconds, "cpu_seconds": cpu_seconds}


def test_rates_are_of_the_fastest_and_the_median_run_and_of_the_least_cpu_time():
    found = rates(100, [taken(2.0, 3.0), taken(1.0, 2.0), taken(4.0, 2.5)], "texts/s")
    assert found == {
        "texts/s": {"best": 100.0, "median": 50.0, "per CPU second": 50.0},
        "runs": 3,
    }


def test_ratios_are_how_many_times_as_fast_ours_are_as_each_peer():
    found = ratios({"Pravāha f32": taken(2, 3), "Pravāha int8": taken(1, 1), "a peer": taken(6, 9)})
    assert found == {
        "Pravāha f32 / a peer": taken(3, 3),
        "Pravāha int8 / a peer": taken(6, 9),
    }


def test_nearness_is_the_cosine_of_equal_rows():
    reference = np.eye(2, 3, dtype=np.float32)
    found = nearness(np.array([[1, 0, 0], [0, 0.6, 0.8]], np.float32), reference)
    assert found["least cosine"] == pytest.approx(0.6)
    assert found["mean cosine"] == pytest.approx(0.8)


def test_percentiles_are_in_milliseconds():
    found = percentiles([0.001 * at for at in range(1, 102)])
    assert found["p50 ms"] == pytest.approx(51)
    assert found["p95 ms"] == pytest.approx(96)


ITEM = KnownItem("q", "gist", "f", 100, 200)
HIT, MISS = Place("f", 100, 200), Place("g", 100, 200)


def test_the_rank_is_that_of_the_first_relevant_result():
    assert rank_of(ITEM, [MISS, HIT, HIT]) == 2
    assert rank_of(ITEM, [MISS]) is None
    assert rank_of(ITEM, [MISS] * DEPTH + [HIT]) is None


def test_figures_are_means_over_the_queries():
    found = figures([1, 2, 6, None])
    assert found["hit@1"] == pytest.approx(1 / 4)
    assert found["hit@5"] == pytest.approx(2 / 4)
    assert found["nDCG@10"] == pytest.approx((1 + 1 / math.log2(3) + 1 / math.log2(7)) / 4)


def test_no_queries_have_no_figures():
    with pytest.raises(ValueError, match="no queries"):
        figures([])


def test_a_difference_has_an_interval_around_its_mean():
    apart = difference([1] * 30 + [None] * 10, [1] * 20 + [None] * 20)["hit@1"]
    assert apart["mean"] == pytest.approx(0.25)
    assert 0 < apart["low"] < 0.25 < apart["high"] < 0.5
    same = difference([1, None, 3], [1, None, 3])["nDCG@10"]
    assert (same["mean"], same["low"], same["high"]) == (0, 0, 0)


def test_our_modes_are_compared_with_the_best_peer_and_with_each_other():
    ranks = {
        "Pravāha, dense": [1, None],
        "Pravāha, hybrid": [1, 1],
        "weak, dense": [None, None],
        "strong, hybrid": [1, 2],
    }
    found = compared(ranks)
    assert found["best peer"] == "strong, hybrid"
    assert found["Pravāha, hybrid less strong, hybrid"]["hit@1"]["mean"] == pytest.approx(0.5)
    assert found["Pravāha, hybrid less Pravāha, dense"]["hit@1"]["mean"] == pytest.approx(0.5)


# -- answers --------------------------------------------------------------------------------------

TEXT = "# Lemal pump\n\nThe Lemal pump is kept in order by Bugal Modedur. It weighs 40 kilograms.\n"


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "pump.md"
    file.write_text(TEXT)
    return {"n": 1, "file": str(file), "start": 0, "end": len(TEXT), "text": TEXT}


def answer(text, sources=(), quotes=(), **more):
    return {"text": text, "sources": list(sources), "quotes": list(quotes), **more}


def test_a_citation_exists_if_its_source_is_what_the_file_has(source):
    wrong = source | {"n": 2, "end": 5}
    found = citations([answer("It is kept [1]. So [2]. Or [3].", [source, wrong])])
    assert found["citations"] == 3
    assert found["exist"] == pytest.approx(1 / 3)


def test_a_quote_opens_if_its_bytes_are_its_text(source):
    quotes = [
        {"n": 1, "start": 14, "end": 28, "text": "The Lemal pump"},
        {"n": 1, "start": 0, "end": 30, "text": "The Lemal pump"},
    ]
    assert citations([answer("", [source], quotes)])["quotes open"] == pytest.approx(1 / 2)


def test_no_citations_have_no_share():
    assert citations([answer("None.")]) == {
        "citations": 0,
        "exist": None,
        "quotes": 0,
        "quotes open": None,
    }


@pytest.mark.parametrize(
    ("sentence", "verdict"),
    [
        ("The Lemal pump is kept in order by Bugal Modedur [1].", True),
        ("Bugal Modedur keeps the pump.", True),
        ("It weighs 40 kilograms.", True),
        ("It weighs 400 kilograms.", False),
        ("The Lemal pump is kept by Nenel Vizeren.", False),
        ("Bugal Modedur does not keep it.", False),
    ],
)
def test_a_sentence_is_supported_by_the_names_and_numbers_of_its_text(sentence, verdict):
    assert supported(sentence, TEXT) is verdict


def test_outcomes_and_declined_questions_are_shares():
    answers = [{"outcome": one} for one in ("answered", "not_found", "unsupported", "answered")]
    questions = [
        Question("q", None, kind=kind) for kind in ("entity", "entity", "elsewhere", "entity")
    ]
    assert outcomes(answers) == {"answered": 0.5, "not_found": 0.25, "unsupported": 0.25}
    assert declined_by_kind(questions, answers) == {
        "elsewhere": 1.0,
        "entity": pytest.approx(1 / 3),
    }


def test_a_right_answer_found_all_documents_and_says_the_fact():
    questions = [Question("q", "hall B-3", ("a.md", "b.md"), 2)] * 2
    answers = [
        answer("In hall B-3.", found=["/x/a.md", "/x/b.md", "/x/c.md"]),
        answer("In hall B-4.", found=["/x/a.md"]),
    ]
    assert right(questions, answers) == {"documents found": 0.5, "said": 0.5}


# -- serving ---------------------------------------------------------------------------------------


def test_goodput_counts_the_requests_that_kept_both_parts_of_the_objective():
    kept = Answered([0.5, 0.6, 0.8])  # 0.15 s for each further token
    late, slow, single = Answered([2.0, 2.1]), Answered([0.5, 2.0]), Answered([0.9])
    outcome = Outcome([kept, late, slow, single], seconds=8.0)
    found = outcome.figures((1.0, 0.15001))
    assert (found["requests"], found["kept"], found["goodput_per_s"]) == (4, 2, 0.25)
    assert found["tokens_per_s"] == 1.0
    assert found["ttft_s"]["p50"] == pytest.approx(0.7)
    assert found["itl_s"]["p99"] == pytest.approx(1.5, rel=0.05)


def test_arrivals_have_the_rate_and_are_the_same_for_each_server():
    found = arrivals(2.0, 500.0, seed=1)
    assert len(found) == pytest.approx(1000, rel=0.1)
    assert found == arrivals(2.0, 500.0, seed=1)
    assert found != arrivals(2.0, 500.0, seed=2)
    assert max(len(one.prompt) + one.new_tokens for one in found) <= CONTEXT


def test_a_turn_over_http_is_compared_with_the_turns_of_the_engine_around_it():
    turns = Turns([1.0, 3.0, 2.0], [4.0, 2.0], [10.0, 20.0], [1.0, 1.0])
    figures = turns.figures(100)
    assert figures["ratios"] == [0.5, 1.25]
    assert figures["ratio"] == pytest.approx(0.875)
    assert figures["best_ratio"] == 0.5
    assert (figures["http_tok_s"], figures["engine_tok_s"]) == (pytest.approx(100 / 3), 50)
