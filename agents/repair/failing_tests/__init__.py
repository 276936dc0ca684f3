"""Repair that starts from failing tests: suspects, candidates, and the choice among those that pass."""
