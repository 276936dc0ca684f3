"""Layer 1, interaction: command line, settings, terminal interface and HTTP server.

An import-linter contract in `pyproject.toml` states which of its packages may import which.
"""
