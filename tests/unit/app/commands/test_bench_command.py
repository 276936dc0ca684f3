"""`pravaha bench`: which benchmark runs, what it prints, what it refuses."""

import json
from functools import partial

import pytest
from typer.testing import CliRunner

from app.cli import cli
from app.commands.bench.setup import show_estimate
from engine.benchmark import roofline


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Runs the command in a user's folder of its own."""
    for name in ("DATA", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"PRAVAHA_{name}_DIR", str(tmp_path / name))
    return lambda *arguments: CliRunner().invoke(cli, ["bench", *arguments])


@pytest.fixture
def short(monkeypatch):
    """Small footprints, each measured once."""
    monkeypatch.setattr(roofline, "FOOTPRINTS", (64_000, 2_000_000))
    quick = partial(roofline.measure_roofline, seconds_each=0.0)
    monkeypatch.setattr(roofline, "measure_roofline", quick)


@pytest.mark.usefixtures("short")
def test_the_roofline_is_a_table_that_names_what_is_not_measured(bench):
    done = bench("--roofline", "--threads", "2")
    assert done.exit_code == 0, done.output
    assert "2 threads" in done.output
    assert "2 MB" in done.output
    for peak in roofline.measure_roofline(1, footprints=(64_000,)).peaks:
        (line,) = (ln for ln in done.output.splitlines() if peak.instruction in ln)
        assert ("not measured" in line) == (not peak.ops_per_second)
    assert "a barrier among 2" in done.output


@pytest.mark.usefixtures("short")
def test_the_roofline_as_one_object(bench):
    done = bench("--roofline", "--json", "--threads", "1")
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert {b["nbytes"] for b in report["bandwidths"]} == {64_000, 2_000_000}
    assert report["threads"] == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--prefix", "--roofline"), "exclude each other"),
        (("--prefix", "--repeats", "2"), "--repeats has no effect with --prefix"),
        (("--roofline", "--repeats", "2"), "--repeats has no effect with --roofline"),
        (("--roofline", "--model", "x"), "--model has no meaning"),
        (("--roofline", "--kv-dtype", "int8"), "--kv-dtype has no meaning"),
    ],
)
def test_contradictions_are_refused(bench, arguments, reason):
    done = bench(*arguments)
    assert done.exit_code == 2
    assert reason in " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--max-num-seqs", "8"), "bench runs 64 streams: raise --max-num-seqs"),
        (("--prefix", "--no-prefix-caching"), "measures prefix caching, which is switched off"),
        (("--roofline", "--threads", "0"), "--threads is 0"),
    ],
)
def test_settings_that_cannot_be_measured_are_refused_before_anything_is_fetched(
    bench, arguments, sentence
):
    done = bench(*arguments)
    assert done.exit_code == 1
    assert sentence in done.output


@pytest.mark.parametrize(
    ("seconds", "runs", "said"),
    [
        (10, 3, ""),
        (70, 1, ""),
        (
            100,
            2,
            "pravaha: this takes about 2 minutes, with 2 runs of each column; Ctrl+C ends it.\n",
        ),
        (80, 1, "pravaha: this takes about 1 minute, with 1 run of each column; Ctrl+C ends it.\n"),
        (1800, None, "pravaha: this takes about 30 minutes; Ctrl+C ends it.\n"),
    ],
)
def test_what_takes_longer_than_a_minute_is_said(capsys, seconds, runs, said):
    show_estimate(seconds, runs)
    assert capsys.readouterr() == ("", said)
