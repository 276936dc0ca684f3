"""`benchmarks/peers.py`: what is read out of the engines' reports, and the ratios made of it."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

_PATH = Path(__file__).resolve().parents[3] / "benchmarks" / "peers.py"
_spec = importlib.util.spec_from_file_location("peers_benchmark", _PATH)
assert _spec is not None
assert _spec.loader is not None
peers = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = peers  # dataclasses look their module up
_spec.loader.exec_module(peers)


def printed(weights: str, batch: str | int, prefill: float | None, decode: float) -> str:
    row = {"engine": "e", "version": "2", "weights": weights, "batch": batch}
    return json.dumps(row | {"prefill_tok_s": prefill, "decode_tok_s": decode})


PRINTED = [
    "loading the model …",
    printed("int8", "single", None, 55.0),
    printed("int8", 4, 90.0, 150.0),
    printed("int8", 16, 80.0, 400.0),
    printed("int4", 4, 70.0, 160.0),
    printed("int4", 1, 99.0, 40.0),
]


def contestant(name: str, **rounds: list[float]) -> object:
    return peers.Contestant(name, "1", {key.lstrip("b"): value for key, value in rounds.items()})


def test_a_peers_lines_are_read_by_weight_format_and_column() -> None:
    figures = peers.figures_of_peer(PRINTED)
    assert figures["e int8"] == ("2", {"single": 55.0, "4": 150.0, "16": 400.0, "prefill": 90.0})
    # One stream of the batch kind is no column, but its prefill counts.
    assert figures["e int4"] == ("2", {"4": 160.0, "prefill": 99.0})


def test_our_report_gives_rates_and_the_share_of_the_fastest_prefill() -> None:
    def column(
        prefill: float | None, decode: float, share: float, of_prefill: float | None
    ) -> dict[str, float | None]:
        return {
            "prefill_throughput": prefill,
            "output_throughput": decode,
            "roofline_share": share,
            "prefill_roofline_share": of_prefill,
        }

    rates, shares = peers.figures_of_ours(
        {
            "columns": {
                "single": column(None, 200.0, 0.5, None),
                "1": column(100.0, 210.0, 0.6, 0.1),
                "4": column(300.0, 400.0, 0.4, 0.3),
                "16": column(250.0, 800.0, 0.3, 0.2),
            }
        }
    )
    assert rates == {"single": 200.0, "4": 400.0, "16": 800.0, "prefill": 300.0}
    assert shares == {"single": 0.5, "4": 0.4, "16": 0.3, "prefill": 0.3}


def test_the_ratio_is_of_bests_over_the_best_peer_of_that_column() -> None:
    ours = contestant("pravaha", single=[100.0, 120.0], b4=[300.0], b64=[900.0])
    slow = contestant("slow", single=[30.0], b4=[100.0, 90.0])
    fast = contestant("fast", single=[40.0, 60.0], b4=[50.0])
    assert peers.ratios(ours, [slow, fast]) == {"single": 2.0, "4": 3.0}


def test_a_failed_command_is_told_with_its_last_words() -> None:
    with pytest.raises(RuntimeError, match=r"exit status 3: no such model$"):
        peers.run(
            [
                sys.executable,
                "-c",
                "import sys; print('no such model', file=sys.stderr); sys.exit(3)",
            ]
        )
