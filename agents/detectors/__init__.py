"""Deterministic detectors: functions from files to findings. No model takes part."""
