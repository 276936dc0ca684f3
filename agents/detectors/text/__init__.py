"""Detectors over prose, tables and tasks, used by the execution agents."""

from agents.detectors.detector import Detector

DETECTORS: tuple[Detector, ...] = ()
