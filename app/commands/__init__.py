"""The sub-commands of `pravaha`, one a file; heavy imports stay inside the functions."""
