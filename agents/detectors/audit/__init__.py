"""Detectors of the audit agents."""

from agents.detectors.detector import Detector

DETECTORS: tuple[Detector, ...] = ()
