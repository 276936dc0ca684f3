"""Missing handling of boundaries: the detector of `edge_case_hunter`."""

from agents.detectors.audit.edge_cases import (
    casts,
    empty_values,
    optional_values,
    outside_data,
    unchecked_access,
)
from agents.detectors.audit.per_file import checked_files, checked_modules, joined
from agents.detectors.detector import Detector, LazyRules

EDGE_CASES = Detector(
    "edge_cases",
    "Unguarded divisions, indexes, conversions, None results, files and recursion. Test files are left out.",
    joined(
        checked_modules(
            empty_values.check_empty_values,
            outside_data.check_outside_data,
            optional_values.check_optional_values,
            tests=False,
        ),
        checked_files(casts.LANGUAGES, casts.check_casts),
        checked_files(unchecked_access.LANGUAGES, unchecked_access.check_access),
    ),
    LazyRules(
        lambda: (
            rule
            for rules in (
                empty_values.RULES,
                outside_data.RULES,
                casts.RULES,
                optional_values.RULES,
                unchecked_access.RULES,
            )
            for rule in rules
        )
    ),
)

__all__ = ["EDGE_CASES"]
