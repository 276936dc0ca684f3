"""`http_streams`: a URL as a transport of MCP messages (streamable HTTP).

Redirects stay within the origin (the SDK sees to that), proxies and credentials of the environment are not
used, and an answer is bounded.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import httpx2
from mcp.client.streamable_http import streamable_http_client

from agents.mcp.server import McpServer

MAX_ANSWER_BYTES = 8 << 20


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise httpx2.ReadError(f"the answer is larger than {MAX_ANSWER_BYTES >> 20} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """Bounds each answer. None is compressed, so a small one cannot become a large one."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Accept-Encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.ReadError("the answer is compressed, which was not asked for")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream)
        return response


def http_client(server: McpServer) -> httpx2.AsyncClient:
    """A client that sends the server's headers.

    Raises:
        McpError: a header names a variable that is not set.
    """
    return httpx2.AsyncClient(
        headers=server.sent_headers(),
        timeout=httpx2.Timeout(server.connect_s, read=server.call_s),
        transport=_BoundedTransport(trust_env=False),
        trust_env=False,
    )


def http_streams(
    server: McpServer, client: httpx2.AsyncClient
) -> AbstractAsyncContextManager[tuple]:  # type: ignore[type-arg]
    """The SDK's transport over the client, which the caller closes."""
    return streamable_http_client(
        server.url, http_client=client, max_sse_event_size=MAX_ANSWER_BYTES
    )
