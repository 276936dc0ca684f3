"""Wrong conditions, wrong order and wrong values: detectors of `logic_flaw`."""

from agents.detectors.audit.logic import (
    conditions,
    control_flow,
    data_flow,
    functions_as_values,
    lost_effects,
    other_languages,
    ranges,
    text_identity,
)
from agents.detectors.audit.logic.ruff_bugs import RUFF_BUGS
from agents.detectors.audit.per_file import checked_files, checked_modules, joined
from agents.detectors.detector import Detector, LazyRules

LOGIC = Detector(
    "logic",
    "Constant tests, unreachable code, self-comparison, off-by-one loops, lost results, shared state.",
    joined(
        checked_modules(
            conditions.check_conditions,
            control_flow.check_control_flow,
            data_flow.check_data_flow,
            functions_as_values.check_functions_as_values,
            lost_effects.check_lost_effects,
            ranges.check_ranges,
        ),
        checked_files(["java"], text_identity.check_identity),
        checked_files(other_languages.LANGUAGES, other_languages.check_other_languages),
    ),
    LazyRules(
        lambda: (
            rule
            for rules in (
                conditions.RULES,
                control_flow.RULES,
                data_flow.RULES,
                functions_as_values.RULES,
                lost_effects.RULES,
                other_languages.RULES,
                ranges.RULES,
                text_identity.RULES,
            )
            for rule in rules
        )
    ),
)

__all__ = ["LOGIC", "RUFF_BUGS"]
