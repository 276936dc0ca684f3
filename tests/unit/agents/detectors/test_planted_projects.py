"""Two small projects with six everyday defects each, looked at by all detectors, without a model."""

from functools import cache

import pytest

from agents.api.finding import Finding, Severity
from agents.plugins.registry import load_registry
from tests.unit.agents.detectors.seeded import SEEDS, Seed, findings, read_seeds

PLANTED = SEEDS.with_name("planted")
PROJECTS = sorted(path.stem for path in PLANTED.glob("*.txt"))
OTHER_PROGRAMS = ("bandit", "types")


@cache
def looked_at(project: str) -> tuple[list[Seed], list[Finding]]:
    registry = load_registry()
    detectors = [
        one
        for one in registry.detectors.values()
        if not one.parts and one.name not in OTHER_PROGRAMS
    ]
    workspace, seeds = read_seeds(PLANTED / f"{project}.txt")
    found = findings(detectors, workspace)
    return seeds, [one for one in found if one.severity.at_least(Severity.MEDIUM)]


@pytest.mark.parametrize("project", PROJECTS)
def test_each_of_the_six_is_found(project):
    seeds, found = looked_at(project)
    assert len(seeds) == 6
    missed = [
        seed
        for seed in seeds
        if not any(one.line == seed.line and one.cwe in seed.cwes for one in found)
    ]
    assert missed == []


@pytest.mark.parametrize("project", PROJECTS)
def test_nothing_else_is_reported(project):
    seeds, found = looked_at(project)
    lines = {seed.line for seed in seeds}
    assert [f"{one.line} {one.rule}" for one in found if one.line not in lines] == []
