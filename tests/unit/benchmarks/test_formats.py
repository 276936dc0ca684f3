"""`benchmarks/formats.py`: columns, memory and tables, of engines with stated speeds."""

import argparse
import json
import mmap
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks import formats
from benchmarks.driven_engine import Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.engine_turns import start
from benchmarks.format_columns import BASELINE, FormatColumns
from benchmarks.format_tables import newest, tables
from benchmarks.held_memory import held_memory, keep_packed_weights
from benchmarks.names_option import names_among
from benchmarks.process_memory import ProcessMemory
from benchmarks.shape_files import exported
from benchmarks.synthetic_models import LLAMA_SHAPES

TOY = Path(__file__).parents[2] / "fakes" / "toy_driver.py"
MEBIBYTE = 1 << 20


@pytest.fixture
def toy(tmp_path):
    """Recipes of engines with stated speeds."""

    def recipe(engine, *flags, label="", **speed):
        path = tmp_path / f"{engine}.json"
        stated = {"engine": engine, "prefill": 1000.0, "decode": 100.0} | speed
        path.write_text(json.dumps(stated))
        return Recipe(TOY, Path(sys.executable), path, flags, label)

    return recipe


def measured(recipes, names, rounds=1, until=float("inf")):
    """The columns of engines, and how often they were saved."""
    saves = []
    with ExitStack() as stack:
        columns = FormatColumns(
            engines=start(stack, recipes, 1),
            threads=1,
            new_tokens=16,
            rounds=lambda context: rounds,
            until=until,
            save=lambda: saves.append(json.dumps(columns.result())),
        )
        columns.measure(names)
    return columns.result(), saves


def test_names_are_separated_by_commas_and_known():
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--shapes", type=names_among(("1B", "3B")))
    assert parser.parse_args(["--shapes", "3B,1B,"]).shapes == ["3B", "1B"]
    with pytest.raises(argparse.ArgumentError, match=r"--shapes: unknown 8B; choose from 1B, 3B"):
        parser.parse_args(["--shapes", "1B,8B"])


# -- columns ---------------------------------------------------------------------------------------


def test_columns_have_the_stated_rates_of_every_engine_and_the_ratio_to_the_best_peer(toy):
    recipes = [
        toy("ours", prefill=3000.0, decode=600.0),
        toy("before", label=BASELINE, prefill=9000.0, decode=900.0),
        toy("quick", prefill=1500.0, decode=200.0),
        toy("slow", prefill=500.0, decode=50.0),
    ]
    result, saves = measured(recipes, ["4x128", "prefill512"], rounds=2)
    assert set(result["columns"]) == {"4x128", "prefill512"}
    decode, prefill = result["columns"]["4x128"], result["columns"]["prefill512"]
    assert decode["tokens_per_second"]["ours Q4_1"]["best"] == pytest.approx(600)
    assert prefill["tokens_per_second"]["slow Q4_1"]["median"] == pytest.approx(500)
    assert decode["ratio_to_best_peer"] == {"best": pytest.approx(3), "median": pytest.approx(3)}
    assert prefill["ratio_to_best_peer"]["best"] == pytest.approx(2)
    assert {len(samples) for samples in decode["seconds"].values()} == {2}
    assert set(decode["share_of_roofline"]) == {"best", "median"}
    assert len(saves) == 4
    assert set(json.loads(saves[0])["columns"]) == {"prefill512"}


def test_streams_and_contexts_are_those_of_the_columns_names(toy):
    result, _ = measured([toy("ours")], ["1x4096", "prefill4096", "16x128"])
    seconds = {name: found["seconds"]["ours Q4_1"] for name, found in result["columns"].items()}
    assert seconds["prefill4096"] == [pytest.approx((4.096,))]
    assert seconds["1x4096"] == [pytest.approx((4.096, 4.096 + 0.16))]
    assert seconds["16x128"] == [pytest.approx((2.048, 2.048 + 16 * 0.16))]


def test_an_engine_that_fails_is_taken_out_with_its_samples_and_the_others_go_on(toy):
    recipes = [toy("ours"), toy("mortal", runs=2), toy("steady")]
    result, _ = measured(recipes, ["prefill512", "1x128"], rounds=3)
    assert result["skipped"] == {"mortal Q4_1": "exit status 1: out of memory"}
    for column in result["columns"].values():
        assert {n: len(s) for n, s in column["seconds"].items()} == {
            "ours Q4_1": 3,
            "steady Q4_1": 3,
        }


def test_no_column_begins_after_time_is_up(toy):
    result, saves = measured([toy("ours")], ["prefill512", "1x128"], until=time.monotonic())
    assert result["columns"] == {}
    assert saves == []


# -- memory ----------------------------------------------------------------------------------------


def test_memory_is_of_every_engine_that_starts(toy, capsys):
    missing = Recipe(TOY, Path("/nowhere/python"), Path("/nowhere"))
    found = held_memory([toy("one"), missing, toy("small", streams=0)], 1)
    assert set(found) == {"one Q4_1"}
    memory = found["one Q4_1"]
    assert memory["peak"] >= memory["resident"] >= memory["anonymous"] > MEBIBYTE
    said = capsys.readouterr().err
    assert "/nowhere/python does not exist" in said
    assert "small.json is skipped: too many streams" in said


def test_packed_weights_are_awaited_and_their_lack_is_an_error(toy, tmp_path):
    folder = tmp_path / "packed"
    folder.mkdir()
    keep_packed_weights(toy("keeps", "--weight-cache", str(folder)), 1, folder)
    assert [path.suffix for path in folder.iterdir()] == [".packed"]
    with pytest.raises(ProcessFailed, match="were not kept"):
        keep_packed_weights(toy("broken", "--unknown"), 1, tmp_path / "empty")


def test_memory_counts_anonymous_pages_and_those_of_mapped_files(tmp_path):
    file = tmp_path / "mapped"
    file.write_bytes(b"x" * 32 * MEBIBYTE)
    before = ProcessMemory.of(os.getpid())
    held = bytearray(b"x") * (48 * MEBIBYTE)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        assert sum(pages[:: mmap.PAGESIZE]) > 0
        after = ProcessMemory.of(os.getpid())
    assert after.anonymous - before.anonymous > 40 * MEBIBYTE
    assert after.file - before.file > 30 * MEBIBYTE
    assert after.resident - before.resident > 70 * MEBIBYTE
    assert after.peak >= after.resident
    assert len(held) == 48 * MEBIBYTE


# -- the result file and its tables ----------------------------------------------------------------


@pytest.fixture
def options(toy, tmp_path, monkeypatch):
    """Options of a run in which every engine is a toy."""
    monkeypatch.setattr(formats, "quantized", lambda *_: toy("model").model)
    ours = toy("pravaha", prefill=3000.0, decode=300.0)
    monkeypatch.setattr(formats, "our_recipe", lambda *_, label="": ours)
    monkeypatch.setattr(formats, "peer_recipe", lambda *_: toy("llama.cpp"))
    return argparse.Namespace(
        dir=tmp_path, cache=tmp_path, json=tmp_path / "result.json", threads=1, rounds=1,
        baseline=None, mapped=False,
    )  # fmt: skip


def test_parts_are_appended_to_the_file_and_only_what_it_lacks_is_missing(options):
    for columns in (["prefill512"], ["1x128", "4x128"]):
        formats.Part("1B", "q6_k", options).measure(columns, float("inf"))
    parts = formats.earlier_parts(options.json)
    assert [list(part["columns"]) for part in parts] == [["prefill512"], ["1x128", "4x128"]]
    assert all(part["command"] and part["machine"] and part["commit"] for part in parts)
    wanted = ["memory", "prefill512", "1x128"]
    assert formats.missing_columns(wanted, "1B", "q6_k", options.json) == ["memory"]
    assert formats.missing_columns(wanted, "3B", "q6_k", options.json) == wanted
    shown = tables(parts)
    assert "| 1B Q6_K, 0 MB, packed 1 | pravaha Q4_1 | 300 (300) | 300 (300) | – | – |" in shown
    assert "|  | ÷ best peer | 3.00 (3.00) | 3.00 (3.00) | – | – | 3.00 (3.00) | – |" in shown
    assert "|  | samples | 1 | 1 | 0 | 0 | 1 | 0 |" in shown


def test_a_file_of_another_script_is_refused(tmp_path):
    other = tmp_path / "peers.json"
    other.write_text("{}")
    with pytest.raises(SystemExit, match="no result of this script"):
        formats.earlier_parts(other)


def test_the_newest_figures_of_a_column_are_shown():
    common = {"shape": "1B", "format": "q8_0"}
    merged = newest(
        [
            common | {"columns": {"1x128": 1, "4x128": 2}, "packed_bytes": 5},
            common | {"columns": {"1x128": 3}},
            {"shape": "3B", "format": "q8_0", "columns": {"1x128": 4}},
        ]
    )
    assert [part["columns"] for part in merged] == [{"1x128": 3, "4x128": 2}, {"1x128": 4}]
    assert merged[0]["packed_bytes"] == 5


def test_memory_has_a_row_for_each_engine():
    held = {"peak": 4e9, "resident": 3e9, "anonymous": 2e9, "file": 1e9}
    part = {"shape": "1B", "format": "q8_0", "file_bytes": 5e8, "columns": {"memory": {"e": held}}}
    assert "| 1B Q8_0, 500 MB | e | 4,000 | 3,000 | 2,000 | 1,000 |" in tables([part])


def test_an_export_without_its_tools_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "benchmarks.shape_files.synthetic_model", lambda *_: tmp_path / "x-f16.gguf"
    )
    with pytest.raises(ProcessFailed, match=r"ov_synthetic-llama-3\.2-1B-int4 cannot be made"):
        exported(LLAMA_SHAPES["1B"], "int4", tmp_path, tmp_path)
