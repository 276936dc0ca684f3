"""The HTTP server: an OpenAI-compatible API over one engine. Never imports the screen."""
