"""Memory of agents: episodes and facts in SQLite, recalled by words and meaning (`docs/agent-memory.md`)."""
