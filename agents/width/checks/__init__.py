"""Checks of candidates, from cheap to dear: parses, defines, types, examples, the project's tests."""
