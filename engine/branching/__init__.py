"""The conversation tree: its durable store and the session that grows it."""
