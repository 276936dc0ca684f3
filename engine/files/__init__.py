"""File helpers: typed JSON fields, inter-process locks, the cache directory."""
