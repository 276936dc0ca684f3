"""Seeded inputs of all packaged agents: `CASES` has one for each, `SCENARIOS` further ones."""

from tests.unit.agents.roster_cases import design, execution, reviewers, security_operations
from tests.unit.agents.roster_cases.case import Case

CASES: dict[str, Case] = {**execution.CASES, **reviewers.CASES, **design.CASES}
SCENARIOS: list[tuple[str, Case]] = [
    *((key, case) for key, cases in execution.SCENARIOS.items() for case in cases),
    *reviewers.SCENARIOS,
    *design.SCENARIOS,
    *security_operations.SCENARIOS,
]
