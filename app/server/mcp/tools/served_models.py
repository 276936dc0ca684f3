"""Which model answers a call that names none."""

from typing import Annotated, Any

from pydantic import Field

from app.server.mcp.api_client import ApiClient
from app.server.mcp.tool import ToolError
from engine.api.snapshot import EngineState

ModelName = Annotated[str | None, Field(description="Which model; the first one if left out.")]
"""The argument of a tool that names its model."""


async def generating_model(api: ApiClient, name: str | None) -> str:
    """The model that generates text: the one named, else the first that is ready, else the first.

    Raises:
        ToolError: none is served.
        ApiRefusal: from the API.
    """
    if name is not None:
        return name
    served = [one for one in await _models(api) if "max_model_len" in one]
    if not served:
        raise ToolError("No model is served here.")
    ready = [one for one in served if one.get("status") == EngineState.READY]
    return str((ready or served)[0]["id"])


async def embedding_model(api: ApiClient) -> str:
    """The model that embeds texts; raises as `generating_model`."""
    served: list[str] = [one["id"] for one in await _models(api) if "max_model_len" not in one]
    if not served:
        raise ToolError(
            "No embedding model is installed: `pravaha models add all-minilm-l6-v2` fetches one."
        )
    return served[0]


async def _models(api: ApiClient) -> list[dict[str, Any]]:
    return list((await api.get("/v1/models"))["data"])
