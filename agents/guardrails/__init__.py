"""Checks of what enters and leaves a model (`docs/guardrails.md`)."""
