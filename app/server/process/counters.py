"""The server's own counters; the engine's are beside them in `/metrics`.

Labels are bounded: the route's pattern, never a path, a field name or any other text of a caller.
"""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series per counter that says when it began
_METHODS = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})


class ServerCounters:
    """One set an application, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._responses = Counter(
            "pravaha_http_responses",
            "HTTP responses begun.",
            ["route", "method", "status"],
            registry=self._registry,
        )
        self._ignored = Counter(
            "pravaha_ignored_fields",
            "Unknown request fields that were ignored.",
            ["route"],
            registry=self._registry,
        )
        self._disconnects = Counter(
            "pravaha_http_disconnects",
            "Clients that left before their answer was complete.",
            ["route"],
            registry=self._registry,
        )
        self._open = Gauge(
            "pravaha_http_requests_open",
            "HTTP requests being answered.",
            registry=self._registry,
        )

    def opened(self) -> None:
        """A request came in."""
        self._open.inc()

    def closed(self) -> None:
        """A request is over, however it ended."""
        self._open.dec()

    def responded(self, route: str, method: str, status: int) -> None:
        """A response began."""
        known = method if method in _METHODS else "other"
        self._responses.labels(route, known, str(status)).inc()

    def ignored_fields(self, route: str, count: int) -> None:
        """So many unknown fields were ignored in one request."""
        self._ignored.labels(route).inc(count)

    def disconnected(self, route: str) -> None:
        """A client left early."""
        self._disconnects.labels(route).inc()

    def render(self) -> bytes:
        """The text exposition of all of them."""
        return generate_latest(self._registry)
