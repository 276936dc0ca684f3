"""One widget a file; each draws lines that a pure `build_*` function made."""
