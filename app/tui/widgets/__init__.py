"""Textual widgets, one in each file; they draw the lines of pure `build_*` functions."""
