"""The middleware around every answer: request ids, our response headers, response counts, unhandled errors.

Pure ASGI, because a `BaseHTTPMiddleware` breaks the cancellation of streams.
"""

import re
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.process.counters import ServerCounters
from app.server.wire.errors import error_response, from_engine
from app.server.wire.fields import IGNORED_HEADER, WITHOUT_EFFECT_HEADER

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_NO_ROUTE = "none"
GUARDRAILS_HEADER = "x-pravaha-guardrails"
"""Lists what the guardrails found in the messages of a call, and what they did."""
IMAGES_HEADER = "x-pravaha-images"
"""How the images of a call were read: `model` or `ocr`."""
NOT_ENFORCED_HEADER = "x-pravaha-not-enforced"
"""Keywords of a call's JSON schema that its answer may violate."""
INVALID_ARGUMENTS_HEADER = "x-pravaha-invalid-arguments"
"""Tools that the answer calls with arguments that their schemas do not allow."""
SKIPPED_TOOLS_HEADER = "x-pravaha-skipped-tools"
"""Types of the tools of a call that the model was not offered."""
_HEADERS = {
    "ignored_fields": IGNORED_HEADER,
    "without_effect": WITHOUT_EFFECT_HEADER,
    "guardrails": GUARDRAILS_HEADER,
    "not_enforced": NOT_ENFORCED_HEADER,
    "invalid_arguments": INVALID_ARGUMENTS_HEADER,
    "skipped_tools": SKIPPED_TOOLS_HEADER,
    "images": IMAGES_HEADER,
}
"""The header for each attribute of a request's state that says something of the call."""


class Envelope:
    """Echoes or creates `x-request-id`, lists ignored fields and findings, counts responses by route pattern.

    It also says how images were read, what of a schema is not enforced, which tools were skipped and which
    are called with invalid arguments. An error that no handler caught is logged and answered with 500 here.
    """

    def __init__(self, app: ASGIApp, *, counters: ServerCounters) -> None:
        self._app = app
        self._counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add headers to the response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope))
        scope.setdefault("state", {})["request_id"] = request_id
        begun = False

        async def send_in_envelope(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                headers["request-id"] = request_id  # Anthropic's name of it
                state = scope.get("state", {})
                for name, header in _HEADERS.items():
                    if value := state.get(name):
                        headers[header] = value
                route = getattr(scope.get("route"), "path", _NO_ROUTE)
                self._counters.responded(route, scope["method"], message["status"])
            await send(message)

        self._counters.opened()
        try:
            await self._app(scope, receive, send_in_envelope)
        except Exception as error:
            if begun:
                raise  # the connection is closed within the response, which the client detects
            await error_response(from_engine(error))(scope, receive, send_in_envelope)
        finally:
            self._counters.closed()


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else f"req-{uuid.uuid4().hex}"
