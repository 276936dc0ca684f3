"""Prometheus counters of the HTTP server; `/metrics` exports them after the engine's.

Labels are bounded: the route's pattern, never a path, a field name or other text of a client.
"""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
)

disable_created_metrics()  # type: ignore[no-untyped-call]  # `_created` series would double the output
_METHODS = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})


class ServerCounters:
    """The counters of one application, in their own registry."""

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
        self._guarded = Counter(
            "pravaha_guardrail_detections",
            "What the guardrails found in texts of clients and models.",
            ["direction", "kind", "action"],
            registry=self._registry,
        )
        self._images = Counter(
            "pravaha_images",
            "Images in chats, by the way that they were read.",
            ["way"],
            registry=self._registry,
        )
        self._prompt_tokens = Counter(
            "pravaha_session_prompt_tokens",
            "Prompt tokens of chats: new in their session, used again, or read again.",
            ["kind"],
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
        """A request finished, successfully or not."""
        self._open.dec()

    def responded(self, route: str, method: str, status: int) -> None:
        """A response began."""
        known = method if method in _METHODS else "other"
        self._responses.labels(route, known, str(status)).inc()

    def ignored_fields(self, route: str, count: int) -> None:
        """`count` unknown fields of one request were ignored."""
        self._ignored.labels(route).inc(count)

    def disconnected(self, route: str) -> None:
        """A client disconnected before its answer was complete."""
        self._disconnects.labels(route).inc()

    def guarded(self, direction: str, kind: str, action: str) -> None:
        """The guardrails found something: `input` or `output`, what, and what happens to it."""
        self._guarded.labels(direction, kind, action).inc()

    def images(self, way: str, count: int) -> None:
        """`count` images of one request were read: by the `model`, or their text by `ocr`."""
        self._images.labels(way).inc(count)

    def prompt_read(self, *, new: int, reused: int, reread: int) -> None:
        """The prompt of a chat was read."""
        self._prompt_tokens.labels("new").inc(new)
        self._prompt_tokens.labels("reused").inc(reused)
        self._prompt_tokens.labels("reread").inc(reread)

    def render(self) -> bytes:
        """All counters in Prometheus text format."""
        return generate_latest(self._registry)
