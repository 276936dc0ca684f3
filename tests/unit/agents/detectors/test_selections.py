"""Detectors that report some of what others find."""

from agents.api.finding import Severity
from agents.detectors.detector import Detector, DetectorContext, Rule, selected
from agents.plugins.registry import load_registry
from agents.runs.detection import DetectorResults
from agents.workspace.workspace import Workspace

GOOD, BAD = Rule("good", Severity.LOW, "Good"), Rule("bad", Severity.HIGH, "Bad")
FILES = Workspace.of_texts({"a.txt": "x\n"})


def counting(calls: list[int]) -> Detector:
    def detect(workspace, context):
        calls.append(1)
        for file in workspace:
            yield GOOD.at(file, 1, "Good.")
            yield BAD.at(file, 1, "Bad.")

    return Detector("counting", "Counts.", detect, (GOOD, BAD))


def test_only_the_wanted_rules_are_reported():
    chosen = selected("chosen", "Chooses.", ["bad"], counting([]))
    assert [one.rule for one in chosen.detect(FILES, DetectorContext())] == ["bad"]
    assert [rule.id for rule in chosen.rules] == ["bad"]


async def test_a_run_computes_the_parts_once():
    calls: list[int] = []
    part = counting(calls)
    results = DetectorResults(FILES, DetectorContext())
    found = await results.of(
        [selected("a", "A.", ["bad"], part), selected("b", "B.", ["good"], part), part]
    )
    assert sorted(one.rule for one in found) == ["bad", "good"]
    assert {one.detector for one in found} == {"counting"}
    assert calls == [1]


def test_every_selection_of_the_built_in_detectors_can_report_something():
    for detector in load_registry().detectors.values():
        if detector.parts:
            assert detector.rules, detector.name
