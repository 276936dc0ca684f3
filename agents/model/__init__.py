"""The model as agents use it: the shared prompt prefix, forks, one-token decisions, capabilities."""
