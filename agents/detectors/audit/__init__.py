"""Detectors of the audit agents."""

from agents.detectors.audit.edge_cases import EDGE_CASES
from agents.detectors.audit.logic import LOGIC, RUFF_BUGS
from agents.detectors.audit.regression import REGRESSION
from agents.detectors.audit.syntax import SYNTAX
from agents.detectors.detector import Detector

DETECTORS: tuple[Detector, ...] = (SYNTAX, LOGIC, RUFF_BUGS, EDGE_CASES, REGRESSION)
