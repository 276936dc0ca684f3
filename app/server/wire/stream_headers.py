"""`STREAM_HEADERS`: what every streamed answer says to caches and proxies."""

from collections.abc import Mapping

STREAM_HEADERS: Mapping[str, str] = {
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # otherwise nginx buffers the stream
}


def raw_stream_headers(content_type: str) -> list[tuple[bytes, bytes]]:
    """The headers of a streamed answer of a type, as ASGI sends them."""
    headers = {"content-type": content_type, **STREAM_HEADERS}
    return [(name.encode(), value.encode()) for name, value in headers.items()]
