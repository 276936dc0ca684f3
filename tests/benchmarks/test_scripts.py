"""Every file in `benchmarks/` is imported and shows its options; what needs no peer runs on a toy.

Peers are toy drivers whose speed is stated, so that the figures that a script makes of it are known.
"""

import argparse
import ast
import json
import runpy
import subprocess
import sys
from datetime import date
from pathlib import Path

import gguf
import numpy as np
import pytest

from benchmarks import formats, scheduler_overhead, simulate
from benchmarks.accuracy import rewrite
from benchmarks.comparison import ComparedEngine, Comparison
from benchmarks.driven_engine import Recipe
from benchmarks.format_tables import tables
from benchmarks.machine import ROOT, write_result
from benchmarks.recipes import FORMATS, peer_recipes
from benchmarks.synthetic_models import Shape, synthetic_model
from engine.executors.open_model import open_model
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run

WITHOUT_OPTIONS = {"benchmarks/peer_models/bf16_checkpoint.py"}
"""Scripts that load a model when they are imported: they are only parsed."""
SCRIPTS = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("benchmarks/**/*.py"))
PACKAGES_OF_PEERS = {
    "chromadb", "faiss", "lancedb", "llama_cpp", "llama_index", "nncf", "onnxruntime", "openvino",
    "sentence_transformers", "txtai",
}  # fmt: skip
TOY = ROOT / "tests" / "fakes" / "toy_driver.py"
TINY = Shape("tiny", hidden=64, layers=2, heads=4, kv_heads=2, feed_forward=96, vocabulary=300)


@pytest.mark.parametrize("script", [one for one in SCRIPTS if one not in WITHOUT_OPTIONS])
def test_a_script_is_imported_and_shows_its_options(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    monkeypatch.syspath_prepend(str((ROOT / script).parent))  # drivers import their neighbours
    ended = None
    try:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    except (ModuleNotFoundError, SystemExit) as error:
        ended = error
    if isinstance(ended, SystemExit):
        assert ended.code == 0
        assert capsys.readouterr().out.startswith("usage: ")
    elif ended is not None:
        assert ended.name.partition(".")[0] in PACKAGES_OF_PEERS


def test_scripts_with_a_json_result_write_its_origin():
    """They call `write_result` or `with_origin`, and write JSON in no other way."""
    for script in SCRIPTS:
        source = (ROOT / script).read_text()
        if '"--json"' in source:
            calls = {
                ast.unparse(node.func)
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.Call)
            }
            assert {"write_result", "with_origin"} & calls, script
            assert not any(one.endswith(".write_text") and "json" in one for one in calls), script


def test_a_result_has_date_machine_versions_and_a_command_without_private_folders(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "argv", ["/home/me/benchmarks/peers.py", "--dir", "/home/me/peers"])
    path = tmp_path / "result.json"
    write_result(path, {"rounds": 3})
    found = json.loads(path.read_text())
    assert found["rounds"] == 3
    assert found["command"] == "python benchmarks/peers.py --dir peers"
    assert date.fromisoformat(found["date"])
    assert found["machine"]["usable_cpus"] >= 1
    assert found["machine"]["memory_gb"] > 0
    assert found["machine"]["cpu"]
    assert found["pravaha"]
    assert list(tmp_path.iterdir()) == [path]


def test_the_simulator_prints_an_outcome_for_each_policy(monkeypatch, capsys):
    flags = ["--trace", "poisson", "--seconds", "10", "--policy", "fcfs", "edf", "--json"]
    monkeypatch.setattr(sys, "argv", ["simulate.py", *flags])
    simulate.main()
    found = json.loads(capsys.readouterr().out)["traces"]["poisson"]
    assert [one["policy"] for one in found] == ["fcfs", "edf"] * 2


def test_the_scheduler_s_overhead_is_measured_at_a_few_steps(monkeypatch, capsys):
    flags = ["--steps", "20", "--rows", "2", "--json"]
    monkeypatch.setattr(sys, "argv", ["scheduler_overhead.py", *flags])
    scheduler_overhead.main()
    found = json.loads(capsys.readouterr().out)
    assert [line["rows"] for line in found["plain"]] == [2]
    assert all(line["total_us"] > 0 for line in found["plain"])


@pytest.fixture
def toy(tmp_path):
    """Recipes of engines with stated speeds."""

    def recipe(engine, prefill=1000.0, decode=100.0, **more):
        path = tmp_path / f"{engine}.json"
        path.write_text(json.dumps({"engine": engine, "prefill": prefill, "decode": decode} | more))
        return Recipe(TOY, Path(sys.executable), path)

    return recipe


def compare(compared, columns, rounds):
    with Comparison(compared, columns, threads=1, repeats=1) as comparison:
        list(comparison.run(rounds, until=float("inf")))
        return comparison.result(rounds)


def test_peers_are_compared_by_rates_ratios_and_shares_of_the_roofline(toy):
    result = compare(
        [
            ComparedEngine(toy("ours", prefill=3000.0, decode=600.0)),
            ComparedEngine(toy("quick", prefill=3000.0, decode=300.0), "quick"),
            ComparedEngine(toy("slow"), "slow"),
        ],
        ["single", "4", "16"],
        rounds=2,
    )
    first = result["engines"][0]
    assert (first["engine"], first["weights"], first["version"]) == ("ours", "Q4_1", "3")
    assert first["tokens_per_second"]["4"]["best"] == pytest.approx(600)
    assert first["runs"]["4"] == first["runs"]["prefill"] == 2
    ratio = result["ratio_to_best_peer"]
    assert set(ratio) == {"single", "4", "16", "prefill"}
    assert ratio["16"]["best"] == ratio["16"]["median"] == pytest.approx(2)
    assert ratio["16"]["best_peer"] == ratio["16"]["median_peer"] == "quick Q4_1"
    assert ratio["prefill"]["best"] == pytest.approx(1)
    assert set(result["share_of_roofline"]) == set(ratio)
    assert json.loads(json.dumps(result))["rounds"] == 2


def test_a_peer_that_is_missing_refuses_fails_or_is_slow_is_left_out_by_name(toy, tmp_path, capsys):
    missing = Recipe(TOY, Path(sys.executable), tmp_path / "nowhere")
    result = compare(
        [
            ComparedEngine(toy("ours", prefill=10.0, decode=10.0)),
            ComparedEngine(toy("other", decode=900.0), rated=False),
            ComparedEngine(missing, "toy"),
            ComparedEngine(toy("mortal", runs=2), "mortal"),
            ComparedEngine(toy("small", streams=1), "small"),
            ComparedEngine(toy("good"), "good"),
            ComparedEngine(toy("slow", prefill=500.0, decode=50.0), "slow"),
        ],
        ["single", "4"],
        rounds=4,
    )
    engines = {one["name"].removesuffix(" Q4_1"): one for one in result["engines"]}
    assert {name: one["failure"] for name, one in engines.items() if one["failure"]} == {
        "toy nowhere": f"{tmp_path / 'nowhere'} does not exist",
        "mortal": "exit status 1: out of memory",
    }
    assert engines["small"]["refused"] == {"4": "too many streams"}
    runs = {
        name: (engines[name]["runs"]["single"], engines[name]["runs"]["4"], engines[name]["slow"])
        for name in ("ours", "good", "slow")
    }
    assert runs["ours"] == runs["good"] == (4, 4, [])  # ours goes on however slow it is
    assert runs["slow"] == (2, 2, ["single", "4"])
    ratio = result["ratio_to_best_peer"]["4"]
    assert (ratio["best_peer"], ratio["best_runs"]) == ("good Q4_1", 4)  # `other` is not rated
    said = capsys.readouterr().err
    assert f"toy nowhere is skipped from here on: {tmp_path / 'nowhere'} does not exist" in said
    assert "mortal Q4_1 is skipped from here on: exit status 1: out of memory" in said
    assert said.count("small Q4_1 is skipped in column 4: too many streams") == 1


def test_every_format_of_every_peer_has_a_driver_and_a_set_up(tmp_path):
    script = ROOT / "benchmarks" / "peers_setup.sh"
    done = subprocess.run([script, tmp_path / "peers", "sglang"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "unknown peer sglang" in done.stderr
    for peer, models in FORMATS.items():
        assert f"install_{peer}() {{" in script.read_text()
        found = peer_recipes(peer, Path("/nowhere"))
        assert [recipe.model.name for recipe in found] == list(models.values())
        assert all(recipe.script.exists() for recipe in found)


def test_formats_are_measured_in_parts_of_which_only_the_missing_are_run(
    toy, tmp_path, monkeypatch
):
    monkeypatch.setattr(formats, "quantized", lambda *_: toy("model").model)
    ours = toy("pravaha", prefill=3000.0, decode=300.0)
    monkeypatch.setattr(formats, "our_recipe", lambda *_, label="": ours)
    monkeypatch.setattr(formats, "peer_recipe", lambda *_: toy("llama.cpp"))
    options = argparse.Namespace(
        dir=tmp_path, cache=tmp_path, json=tmp_path / "result.json", threads=1, rounds=1,
        baseline=None, mapped=False,
    )  # fmt: skip
    for columns in (["prefill512"], ["1x128", "4x128"]):
        formats.Part("1B", "q6_k", options).measure(columns, float("inf"))
    parts = formats.earlier_parts(options.json)
    assert [list(part["columns"]) for part in parts] == [["prefill512"], ["1x128", "4x128"]]
    assert all(part["command"] and part["machine"] and part["commit"] for part in parts)
    wanted = ["memory", "prefill512", "1x128"]
    assert formats.missing_columns(wanted, "1B", "q6_k", options.json) == ["memory"]
    assert formats.missing_columns(wanted, "3B", "q6_k", options.json) == wanted
    shown = tables(parts)
    assert "|  |  | 1 × 128 | 4 × 128 | prefill 512 |" in shown
    assert (
        "| 1B Q6_K, 0 MB, packed 1 | pravaha Q4_1 | 300 (300) | 300 (300) | 3,000 (3,000) |"
        in shown
    )
    assert "|  | ÷ best peer | 3.00 (3.00) | 3.00 (3.00) | 3.00 (3.00) |" in shown
    assert "|  | samples | 1 | 1 | 1 |" in shown


@pytest.fixture
def demo(tmp_path):
    """A file with a tokenizer to take; its folder is not that of the synthetic models."""
    return write_tiny_gguf(tmp_path / "demo.gguf")


@pytest.mark.parametrize("weights", ["q4_1", "q4_0", "f16"])
def test_a_synthetic_model_is_written_once_and_runs(demo, tmp_path, weights):
    path = synthetic_model(TINY, demo, tmp_path / "cache", weights)
    written = path.stat().st_mtime_ns
    assert synthetic_model(TINY, demo, tmp_path / "cache", weights).stat().st_mtime_ns == written
    opened = open_model(path)
    assert (opened.spec.vocab_size, opened.spec.hidden_size) == (300, 64)
    assert opened.tokenizer.encode("Hello") == open_model(demo).tokenizer.encode("Hello")
    stepper = load_stepper(path)
    run = Run([1, 2, 3], 4)
    stepper.run([run])
    stepper.executor.close()
    assert len(run.tokens) == 4
    assert not run.failed


@pytest.mark.parametrize("weights", ["F32", "BF16", "Q8_0"])
def test_a_rewritten_model_has_the_same_fields_and_nearly_the_same_weights(tmp_path, demo, weights):
    source = synthetic_model(TINY, demo, tmp_path)
    target = tmp_path / "again.gguf"
    rewrite(source, target, gguf.GGMLQuantizationType[weights])
    before, after = gguf.GGUFReader(str(source)), gguf.GGUFReader(str(target))
    kept = {n for n in before.fields if not n.startswith("GGUF.") and n != "general.file_type"}
    assert kept <= set(after.fields)
    for old, new in zip(before.tensors, after.tensors, strict=True):
        assert old.name == new.name
        expected, got = (gguf.quants.dequantize(t.data, t.tensor_type) for t in (old, new))
        tolerance = {"F32": 0.0, "BF16": 2**-8, "Q8_0": 2**-7}[weights] * np.abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)
