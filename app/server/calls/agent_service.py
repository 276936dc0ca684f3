"""The service that runs the agents of a server."""

from starlette.requests import Request

from agents.service.run_service import RunService
from app.server.process.context import server_context
from app.server.wire.errors import ApiError


def agent_service(request: Request) -> RunService:
    """The service of the server.

    Raises:
        ApiError: 404, it runs no agents.
    """
    service = server_context(request).agents
    if service is None:
        raise ApiError(404, "This server runs no agents.", code="no_agents")
    return service
