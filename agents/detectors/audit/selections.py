"""What agents take from other agents' detectors of the audit: findings of some rules, computed once for all."""

from agents.detectors.audit.consistency import CONSISTENCY
from agents.detectors.audit.edge_cases import EDGE_CASES
from agents.detectors.audit.hallucination import HALLUCINATION
from agents.detectors.audit.logic import LOGIC
from agents.detectors.audit.regression import REGRESSION
from agents.detectors.detector import Detector, selected

SELECTIONS: tuple[Detector, ...] = (
    selected(
        "missing_names",
        "Finds imports, entry points and links of documents to what does not exist.",
        ["missing-path", "unknown-name"],
        HALLUCINATION,
    ),
    selected(
        "wrong_calls", "Finds calls that do not fit the signature.", ["wrong-call"], CONSISTENCY
    ),
    selected(
        "divisions", "Finds divisions by what may be zero.", ["unguarded-division"], EDGE_CASES
    ),
    selected("left_out_elements", "Finds ranges that leave out an element.", ["off-by-one"], LOGIC),
    selected(
        "slower_benchmarks",
        "Finds benchmarks that became slower.",
        ["benchmark-regression"],
        REGRESSION,
    ),
)
