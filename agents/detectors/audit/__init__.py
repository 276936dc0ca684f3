"""Detectors of the audit agents."""

from agents.detectors.audit.consistency import CONSISTENCY
from agents.detectors.audit.documents import DOCUMENTS
from agents.detectors.audit.edge_cases import EDGE_CASES
from agents.detectors.audit.hallucination import HALLUCINATION
from agents.detectors.audit.logic import LOGIC, RUFF_BUGS
from agents.detectors.audit.performance import PERFORMANCE
from agents.detectors.audit.regression import REGRESSION
from agents.detectors.audit.selections import SELECTIONS
from agents.detectors.audit.syntax import SYNTAX
from agents.detectors.audit.types import TYPES
from agents.detectors.detector import Detector

__all__ = ["DETECTORS", "EDGE_CASES", "LOGIC", "REGRESSION", "SYNTAX"]

DETECTORS: tuple[Detector, ...] = (
    SYNTAX,
    LOGIC,
    RUFF_BUGS,
    EDGE_CASES,
    REGRESSION,
    TYPES,
    PERFORMANCE,
    CONSISTENCY,
    HALLUCINATION,
    DOCUMENTS,
    *SELECTIONS,
)
