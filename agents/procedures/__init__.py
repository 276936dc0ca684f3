"""Procedures: what an agent does without a model, where its result is more than its findings."""
