"""The files that agents work on: found once, read beneath a root, parsed on demand and shared."""
