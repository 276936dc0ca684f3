"""Small helpers over files: typed JSON fields, locks, the cache directory."""
