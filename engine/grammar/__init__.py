"""Grammars: from a stated form to a token mask a step (`docs/structured-output.md`)."""
