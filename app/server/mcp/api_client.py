"""`ApiClient`: the HTTP API as tools and resources call it; its refusals become `ApiRefusal`."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.types import ASGIApp

from app.server.mcp.asgi_transport import AsgiTransport
from engine.api.errors import PravahaError

IN_PROCESS_URL = "http://localhost"
"""A loopback name, as a server bound to loopback demands."""
_CREDENTIALS = ("authorization", "x-api-key")
_CONNECT_S = 10.0
_PAGE = 100
"""The largest page of the API's lists."""
_MAX_PAGES = 10


class ApiRefusal(PravahaError):
    """The API refused a call, or failed; the message is its own sentence."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class ApiClient:
    """Calls of one caller, with the credentials that the caller sent."""

    def __init__(
        self, http: httpx.AsyncClient, credentials: Mapping[str, str] | None = None
    ) -> None:
        self._http = http
        self._credentials = dict(credentials or {})

    def for_caller(self, headers: Mapping[str, str]) -> "ApiClient":
        """The same API with the credentials in a caller's headers: a caller may do here what it may there."""
        return ApiClient(
            self._http, {name: headers[name] for name in _CREDENTIALS if name in headers}
        )

    async def get(self, path: str, **params: Any) -> Any:
        """The JSON answer of a GET.

        Raises:
            ApiRefusal: the API refused it or cannot be reached.
        """
        return (await self._whole("GET", path, params=params)).json()

    async def text(self, path: str) -> str:
        """The text of a GET; raises as `get`."""
        return (await self._whole("GET", path)).text

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON answer of a POST; raises as `get`."""
        return (await self._whole("POST", path, json=dict(body))).json()

    async def listed(self, path: str) -> list[dict[str, Any]]:
        """The first thousand objects of a list, page by page; raises as `get`."""
        found: list[dict[str, Any]] = []
        after: dict[str, str] = {}
        for _ in range(_MAX_PAGES):
            page = await self.get(path, limit=_PAGE, **after)
            found += page["data"]
            if not page["has_more"]:
                break
            after = {"after": page["last_id"]}
        return found

    async def events(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of a stream until its end. Close it early to stop what computes them.

        Raises:
            ApiRefusal: the API refused the call, cannot be reached, or failed within the stream.
        """
        async with self._answer(method, path, json=body, params=params) as response:
            async for line in response.aiter_lines():
                data = line.removeprefix("data: ")
                if data == line:
                    continue  # a comment, an id or the end of an event
                if data == "[DONE]":
                    return
                event = json.loads(data)
                if isinstance(event.get("error"), dict):
                    raise _refusal(response.status_code, event)
                yield event

    async def _whole(self, method: str, path: str, **more: Any) -> httpx.Response:
        async with self._answer(method, path, **more) as response:
            await response.aread()
            return response

    @asynccontextmanager
    async def _answer(self, method: str, path: str, **more: Any) -> AsyncIterator[httpx.Response]:
        try:
            async with self._http.stream(
                method, path, headers=self._credentials, **more
            ) as response:
                if response.is_error:
                    await response.aread()
                    raise _refusal(response.status_code, _object(response.text))
                yield response
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise ApiRefusal(
                503, f"The server at {self._http.base_url} does not answer: {reason}"
            ) from error


def in_process_client(app: ASGIApp) -> httpx.AsyncClient:
    """An application of this process; it is called without a socket."""
    never = httpx.Timeout(None)
    return httpx.AsyncClient(transport=AsgiTransport(app), base_url=IN_PROCESS_URL, timeout=never)


def remote_client(url: str, api_key: str | None) -> httpx.AsyncClient:
    """A server. Answers may take as long as they take; only connecting is bounded."""
    return httpx.AsyncClient(
        base_url=url,
        timeout=httpx.Timeout(None, connect=_CONNECT_S),
        headers={"authorization": f"Bearer {api_key}"} if api_key else None,
    )


def _refusal(status: int, body: Mapping[str, Any]) -> ApiRefusal:
    error = body.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return ApiRefusal(status, f"The server answered with status {status}.")
    code = error.get("code")
    return ApiRefusal(status, error["message"], code if isinstance(code, str) else None)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
