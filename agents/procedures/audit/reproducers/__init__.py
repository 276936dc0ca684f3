"""Tests that show a finding: by calling the code with what breaks it, or by its source."""

from agents.api.finding import Finding
from agents.detectors.audit.python_module import PythonModule
from agents.procedures.audit.reproducers.boundaries import boundary_test, default_test
from agents.procedures.audit.reproducers.dangerous_calls import (
    dangerous_call_tests,
    none_comparison_test,
)
from agents.procedures.audit.reproducers.reproducer import Reproducer
from agents.procedures.audit.reproducers.source_checks import source_check

__all__ = ["Reproducer", "reproducers_of"]


def reproducers_of(module: PythonModule, finding: Finding) -> list[Reproducer]:
    """The tests that may show a finding, those of behaviour first.

    Whether one of them really fails before the fix is known when it has run.
    """
    single = (boundary_test, default_test, none_comparison_test)
    found = [test for make in single if (test := make(module, finding)) is not None]
    found += dangerous_call_tests(module, finding)
    check = source_check(module, finding)
    return [*found, check] if check is not None else found
