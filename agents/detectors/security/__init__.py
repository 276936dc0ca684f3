"""Detectors of the security agents."""

from agents.detectors.detector import Detector

DETECTORS: tuple[Detector, ...] = ()
