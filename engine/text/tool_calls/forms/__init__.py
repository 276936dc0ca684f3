"""The forms of calls of model families, one in each file."""
