"""Procedures of the security agents: `run` in the module with the agent's key; other modules help them."""
