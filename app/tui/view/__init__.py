"""Pure functions from snapshots and nodes to lines of spans, testable without Textual."""
