"""Layers 2–4, 6 and 7: the inference engine, its pipeline, memory plane, branching and metrics."""
