"""`rfc3339`: points in time as Ollama and Anthropic write them."""

from datetime import datetime


def rfc3339(instant: datetime) -> str:
    """A point in time in UTC, such as `2026-11-28T09:30:00Z`."""
    return instant.isoformat().replace("+00:00", "Z")
