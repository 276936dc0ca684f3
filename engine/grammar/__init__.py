"""Constrained decoding: grammars compiled to token masks (`docs/structured-output.md`)."""
