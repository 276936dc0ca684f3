"""The roofline report: everything that the native core can measure is in it, the rest by name."""

import json

import pytest

from engine import _core
from engine.benchmark.roofline import ROUNDS, measure_roofline

SMALL = (64_000, 2_000_000)


@pytest.fixture(scope="module")
def report():
    return measure_roofline(2, footprints=SMALL, seconds_each=0.001)


def test_each_footprint_is_read_by_one_and_by_all_with_both_pages(report):
    found = {(b.nbytes, b.threads, b.huge_pages) for b in report.bandwidths}
    assert found == {(n, t, huge) for n in SMALL for t in (1, 2) for huge in (True, False)}
    assert all(b.bytes_per_second > 1e6 for b in report.bandwidths)


def test_every_instruction_is_named_and_the_present_ones_have_figures(report):
    known = _core.peak_instructions()
    assert [(p.instruction, p.data_type) for p in report.peaks] == [known[:2] for known in known]
    for peak, (_, _, available) in zip(report.peaks, known, strict=True):
        assert set(peak.ops_per_second) == ({1, 2} if available else set())
        assert all(rate > 1e6 for rate in peak.ops_per_second.values())


def test_the_report_is_plain_data(report):
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["barrier_seconds"] > 0
    assert plain["dispatch"] in {"amx", "avx512", "avxvnni", "avx2", "portable"}


def test_one_thread_is_measured_once():
    report = measure_roofline(1, footprints=SMALL[:1], seconds_each=0.001)
    assert [b.threads for b in report.bandwidths] == [1, 1]


def test_progress_names_what_comes_next():
    said: list[str] = []
    measure_roofline(1, footprints=(2_000_000,), seconds_each=0.0, on_progress=said.append)
    round_ = ["2 MB", *(name for name, _, _ in _core.peak_instructions()), "barriers"]
    assert said == ROUNDS * round_


@pytest.mark.parametrize(
    ("instruction", "sentence"),
    [("mmx", "There is no instruction"), (None, "cannot be measured here")],
)
def test_what_cannot_be_measured_is_refused_by_name(instruction, sentence):
    absent = [name for name, _, available in _core.peak_instructions() if not available]
    if instruction is None and not absent:
        pytest.skip("this machine has every instruction")
    with pytest.raises(ValueError, match=sentence):
        _core.measure_peak(instruction or absent[0], 1, 0.0)
