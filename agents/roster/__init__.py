"""The agents: specification files, their search order, and their checks."""
