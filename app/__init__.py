"""Layer 1, interaction: command line, settings, terminal interface and HTTP server."""
