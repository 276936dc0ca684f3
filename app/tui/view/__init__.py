"""Pure functions from snapshots and nodes to lines of spans: the screen, testable without Textual."""
