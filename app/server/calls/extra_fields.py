"""Applies the rules of `wire.fields` to one request: headers list what has no effect, the rest is counted."""

from collections.abc import Sequence

from starlette.requests import Request

from app.server.process.context import server_context
from app.server.wire.body import Body
from app.server.wire.fields import discard_undeclared, header_value, undeclared_fields
from app.server.wire.json_body import JsonRequest


def check_extra_fields(request: Request, body: Body, *, ignored: Sequence[str] = ()) -> None:
    """Refuse, accept or count every field of the body that its schema does not declare.

    The values of those fields are freed.

    Args:
        request: the HTTP request.
        body: its body.
        ignored: paths of further parts of the body that have no effect.

    Raises:
        ApiError: 400 for an unsupported field, or for an unknown one with `strict_fields`.
    """
    context = server_context(request)
    found = undeclared_fields(body, strict=context.config.strict_fields)
    unknown = [*found.unknown, *ignored]
    discard_undeclared(body)
    if isinstance(request, JsonRequest):
        request.discard()
    if found.without_effect:
        request.state.without_effect = header_value(found.without_effect)
    if unknown:
        context.counters.ignored_fields(request.scope["route"].path, len(unknown))
        request.state.ignored_fields = header_value(unknown)
