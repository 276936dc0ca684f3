"""Output to the terminal: what is written, and when."""
