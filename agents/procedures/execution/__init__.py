"""Procedures of the execution agents: `run` in the module with the agent's key; other modules help them."""
