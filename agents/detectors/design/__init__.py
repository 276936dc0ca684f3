"""Detectors of the design agents."""

from agents.detectors.detector import Detector

DETECTORS: tuple[Detector, ...] = ()
