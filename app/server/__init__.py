"""The headless face: an OpenAI-compatible HTTP API over one engine. Knows nothing of the screen."""
