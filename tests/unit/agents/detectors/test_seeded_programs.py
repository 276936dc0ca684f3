"""`security_audit` on programs with several spellings of many defects, beside code that is in order."""

from functools import cache

import pytest

from agents.api.finding import Finding, Severity
from agents.plugins.registry import load_registry
from agents.roster.roster import load_roster
from agents.workspace.workspace import Workspace
from tests.unit.agents.detectors.seeded import SEEDS, Seed, findings, read_seeds

PROGRAMS = sorted(path.stem for path in SEEDS.glob("*.txt"))


@cache
def audited(program: str) -> tuple[Workspace, list[Seed], list[Finding]]:
    """A program, its defects, and the findings without those of external tools."""
    registry = load_registry()
    names = load_roster(registry).get("security_audit").detectors
    detectors = [registry.detector(name) for name in names if name != "bandit"]
    workspace, seeds = read_seeds(SEEDS / f"{program}.txt")
    return workspace, seeds, findings(detectors, workspace)


def test_there_are_programs():
    assert len(PROGRAMS) >= 5


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_defect_is_found_with_its_line_weakness_and_severity(program):
    _, seeds, found = audited(program)
    assert seeds
    missed = [
        f"{seed.file}:{seed.line} {sorted(seed.cwes)}"
        for seed in seeds
        if not any(
            one.file == seed.file
            and one.line <= seed.line <= one.end_line
            and one.cwe in seed.cwes
            and one.severity.at_least(Severity.MEDIUM)
            for one in found
        )
    ]
    assert missed == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_code_in_order_is_not_reported(program):
    _, seeds, found = audited(program)
    marked = {(seed.file, seed.line) for seed in seeds}
    false = [
        f"{one.file}:{one.line} {one.rule}"
        for one in found
        if one.severity.at_least(Severity.MEDIUM)
        and not any((one.file, line) in marked for line in range(one.line, one.end_line + 1))
    ]
    assert false == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_evidence_quotes_the_lines_and_shows_no_secret(program):
    workspace, _, found = audited(program)
    for one in found:
        file = workspace.get(one.file)
        assert file is not None
        assert 1 <= one.line <= one.end_line <= len(file.lines)
        assert one.evidence
        if one.rule in ("leaked-token", "hardcoded-password", "password-in-url"):
            assert "…" in one.evidence
