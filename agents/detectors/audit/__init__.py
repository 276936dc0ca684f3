"""Detectors of the audit agents."""

from agents.detectors.audit.syntax import SYNTAX
from agents.detectors.detector import Detector

DETECTORS: tuple[Detector, ...] = (SYNTAX,)
