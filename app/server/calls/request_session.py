"""`request_session`: the name that a request gives its session."""

from starlette.requests import Request

from app.server.process.context import ServerContext
from app.server.process.sessions import given_name


def request_session(request: Request, context: ServerContext, given: str | None) -> str | None:
    """The name in a field or a header of a request; None without any.

    It is the same in every round of an answer with tools of the server: a second look at the id of the
    request would take it for one that comes again.

    Args:
        request: the HTTP request.
        context: the server.
        given: the field.
    """
    if not hasattr(request.state, "session"):
        names = context.sessions.request_names
        request.state.session = given_name(request.headers, given, names)
    name: str | None = request.state.session
    return name
