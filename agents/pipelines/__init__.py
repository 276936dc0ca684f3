"""Pipelines: agents as nodes of a directed acyclic graph, run to a durable result."""
