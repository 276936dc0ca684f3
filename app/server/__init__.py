"""The headless HTTP server: one engine, OpenAI-compatible wire faces."""
