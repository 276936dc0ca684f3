"""`benchmarks/peers.py`: figures and ratios made of what drivers measured, by stated speeds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.comparison import ComparedEngine, Comparison
from benchmarks.driven_engine import DrivenEngine, OrderRefused, Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.drivers.orders import Order
from benchmarks.measurements import Measurements, shares
from benchmarks.peer_ratios import equal_runs, peer_ratios
from benchmarks.recipes import FORMATS, peer_recipes

ROOT = Path(__file__).parents[3]
TOY = Path(__file__).parents[2] / "fakes" / "toy_driver.py"


@pytest.fixture
def toy(tmp_path):
    """Recipes of engines with stated speeds."""

    def recipe(engine, prefill=1000.0, decode=100.0, **more):
        path = tmp_path / f"{engine}.json"
        path.write_text(json.dumps({"engine": engine, "prefill": prefill, "decode": decode} | more))
        return Recipe(TOY, Path(sys.executable), path)

    return recipe


def compare(compared, columns, rounds=1, **more):
    with Comparison(compared, columns, threads=1, repeats=1) as run:
        list(run.run(rounds, until=more.get("until", float("inf"))))
        return run, run.result(rounds)


# -- measurements ----------------------------------------------------------------------------------


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


# -- engines in processes --------------------------------------------------------------------------


def test_a_driver_answers_orders_whatever_its_engine_prints(toy):
    with DrivenEngine(toy("e"), threads=2) as engine:
        assert engine.name == "e Q4_1"
        assert engine.run(Order(65, [[1] * 64, [2] * 64])) == pytest.approx(0.128 + 1.28)


def test_an_engine_is_stopped_between_orders_and_gone_after_the_last(toy):
    def state(pid):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    def wait_stopped(pid):
        _, status = os.waitpid(pid, os.WUNTRACED)
        return os.WIFSTOPPED(status)

    with DrivenEngine(toy("e"), threads=1) as engine:
        pid = engine.pid
        assert wait_stopped(pid)
        engine.run(Order(1, [[1]]))
        assert wait_stopped(pid)
        assert state(pid) == "T"
    assert not Path(f"/proc/{pid}").exists()


def test_an_engine_that_dies_is_told_with_its_last_words(toy):
    engine = DrivenEngine(toy("e", runs=1), threads=1)
    engine.run(Order(1, [[1]]))
    with pytest.raises(ProcessFailed, match=r"exit status 1: out of memory$"):
        engine.run(Order(1, [[1]]))


def test_an_engine_may_refuse_an_order_and_go_on(toy):
    with DrivenEngine(toy("e", streams=1), threads=1) as engine:
        with pytest.raises(OrderRefused, match="too many streams"):
            engine.run(Order(1, [[1], [2]]))
        assert engine.run(Order(1, [[1]])) > 0


# -- the comparison --------------------------------------------------------------------------------


def test_the_result_has_rates_ratios_and_shares_of_stated_speeds(toy):
    compared = [
        ComparedEngine(toy("ours", prefill=3000.0, decode=600.0)),
        ComparedEngine(toy("quick", prefill=3000.0, decode=300.0), "quick"),
        ComparedEngine(toy("slow"), "slow"),
    ]
    _, result = compare(compared, ["single", "4", "16"], rounds=2)
    first = result["engines"][0]
    assert first["name"] == "ours Q4_1"
    assert first["tokens_per_second"]["4"]["best"] == pytest.approx(600)
    assert len(first["long"][4]) == 2
    assert first["runs"]["4"] == first["runs"]["prefill"] == 2
    assert (first["engine"], first["weights"], first["version"]) == ("ours", "Q4_1", "3")
    assert first["model"] == "ours.json"
    ratio = result["ratio_to_best_peer"]
    assert set(ratio) == {"single", "4", "16", "prefill"}
    assert ratio["16"]["best"] == ratio["16"]["median"] == pytest.approx(2)
    assert ratio["16"]["best_peer"] == ratio["16"]["median_peer"] == "quick Q4_1"
    assert ratio["prefill"]["best"] == pytest.approx(1)
    assert set(result["share_of_roofline"]) == set(ratio)
    assert all(share.keys() == {"best", "median"} for share in result["share_of_roofline"].values())
    assert json.loads(json.dumps(result))["rounds"] == 2


def test_one_of_ours_that_is_not_rated_is_in_the_table_and_in_no_ratio(toy):
    compared = [
        ComparedEngine(toy("ours", decode=200.0)),
        ComparedEngine(toy("other", decode=900.0), rated=False),
        ComparedEngine(toy("slow"), "slow"),
    ]
    _, result = compare(compared, ["4"])
    assert result["ratio_to_best_peer"]["4"]["best"] == pytest.approx(2)
    assert [e["name"] for e in result["engines"]] == ["ours Q4_1", "other Q4_1", "slow Q4_1"]


def test_who_is_missing_or_fails_is_skipped_by_name_and_the_others_go_on(toy, tmp_path, capsys):
    missing = Recipe(TOY, Path(sys.executable), tmp_path / "nowhere")
    compared = [
        ComparedEngine(toy("ours")),
        ComparedEngine(missing, "toy"),
        ComparedEngine(toy("mortal", runs=2), "mortal"),
        ComparedEngine(toy("steady"), "steady"),
    ]
    _, result = compare(compared, ["single", "4"])
    said = capsys.readouterr().err
    assert f"toy nowhere is skipped from here on: {tmp_path / 'nowhere'} does not exist" in said
    assert "mortal Q4_1 is skipped from here on: exit status 1: out of memory" in said
    failures = {e["name"]: e["failure"] for e in result["engines"]}
    assert failures == {
        "ours Q4_1": None,
        "toy nowhere": f"{tmp_path / 'nowhere'} does not exist",
        "mortal Q4_1": "exit status 1: out of memory",
        "steady Q4_1": None,
    }
    assert "4" not in result["engines"][2]["tokens_per_second"]


def test_a_column_that_an_engine_refuses_is_skipped_alone(toy, capsys):
    compared = [ComparedEngine(toy("ours")), ComparedEngine(toy("small", streams=4), "small")]
    _, result = compare(compared, ["16", "4"], rounds=2)
    assert set(result["engines"][1]["tokens_per_second"]) == {"4", "prefill"}
    assert result["engines"][1]["refused"] == {"16": "too many streams"}
    said = capsys.readouterr().err
    assert said.count("small Q4_1 is skipped in column 16: too many streams") == 1


def test_turns_rotate(toy, capsys):
    compare([ComparedEngine(toy("a")), ComparedEngine(toy("b"), "b")], ["4"], rounds=3)
    turns = [ln for ln in capsys.readouterr().err.splitlines() if ln.startswith("round")]
    assert [ln.split()[-2] for ln in turns] == ["a", "b", "b", "a", "a", "b"]


def test_a_peer_far_below_the_best_peer_runs_twice_in_a_column_and_never_us(toy, capsys):
    compared = [
        ComparedEngine(toy("ours", prefill=10.0, decode=10.0)),
        ComparedEngine(toy("good", prefill=1000.0, decode=100.0), "good"),
        ComparedEngine(toy("near", prefill=500.0, decode=70.0), "near"),
        ComparedEngine(toy("prefills", prefill=700.0, decode=10.0), "prefills"),
        ComparedEngine(toy("slow", prefill=500.0, decode=50.0), "slow"),
    ]
    _, result = compare(compared, ["single", "4"], rounds=4)
    runs = {
        e["engine"]: (e["runs"]["single"], e["runs"]["4"], e["slow"]) for e in result["engines"]
    }
    assert runs == {
        "ours": (4, 4, []),
        "good": (4, 4, []),
        "near": (4, 4, []),
        "prefills": (2, 4, ["single"]),
        "slow": (2, 2, ["single", "4"]),
    }
    assert result["ratio_to_best_peer"]["4"]["best_runs"] == 4
    assert "slow Q4_1 runs in no later round of column 4" in capsys.readouterr().err


def test_the_first_round_completes_and_no_later_column_begins_after_time_is_up(toy, capsys):
    _, result = compare([ComparedEngine(toy("a"))], ["single", "4"], rounds=9, until=0.0)
    assert result["engines"][0]["runs"] == {
        "single": 1, "4": 1, "16": 0, "32": 0, "64": 0, "prefill": 1,
    }  # fmt: skip
    assert "time limit reached after 1 rounds" in capsys.readouterr().err


def test_every_format_of_every_peer_has_a_driver():
    for peer, models in FORMATS.items():
        found = peer_recipes(peer, Path("/nowhere"))
        assert [recipe.model.name for recipe in found] == list(models.values())
        for recipe in found:
            assert recipe.script.exists()
            assert recipe.missing == Path(f"/nowhere/{peer}/bin/python")


def test_the_set_up_script_refuses_an_unknown_peer_and_installs_every_known_one(tmp_path):
    script = ROOT / "benchmarks" / "peers_setup.sh"
    done = subprocess.run([script, tmp_path / "peers", "sglang"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "unknown peer sglang" in done.stderr
    assert "peers_setup.sh DIR [PEER...]" in done.stderr
    assert [p for p in FORMATS if f"install_{p}() {{" not in script.read_text()] == []


def test_formats_of_a_peer_can_be_chosen():
    found = peer_recipes("openvino", Path("/nowhere"), "--prefix-caching", formats=("int4",))
    assert [(recipe.model.name, recipe.flags) for recipe in found] == [
        ("ov_int4", ("--prefix-caching",))
    ]
