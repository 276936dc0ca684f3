"""Runs: one agent at work on one task, its events, budget, permissions and result."""
