"""Decisions from probabilities of single tokens: labels, prompts, and how probabilities are read."""
