"""The tool `embed`: vectors of texts."""

from typing import Annotated, Any

from pydantic import Field

from app.server.mcp.tool import Arguments, Output, Tool, ToolCall
from app.server.mcp.tools.served_models import embedding_model

MAX_TEXTS = 256


class EmbedArguments(Arguments):
    """What to embed."""

    texts: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        Field(min_length=1, max_length=MAX_TEXTS, description="The texts, one vector each."),
    ]
    dimensions: Annotated[
        int | None, Field(ge=1, description="Shorter vectors; the model's own length if left out.")
    ] = None


class Vectors(Output):
    """Vectors of length 1, in the order of the texts: their dot product is the cosine."""

    vectors: list[list[float]]
    dimensions: int
    model: str


async def embed(call: ToolCall, given: EmbedArguments) -> Vectors:
    """Embed texts."""
    body: dict[str, Any] = {"model": await embedding_model(call.api), "input": given.texts}
    if given.dimensions is not None:
        body["dimensions"] = given.dimensions
    answer = await call.api.post("/v1/embeddings", body)
    vectors = [one["embedding"] for one in answer["data"]]
    return Vectors(vectors=vectors, dimensions=len(vectors[0]), model=answer["model"])


EMBED = Tool(
    "embed",
    "Embed texts",
    "Compute vectors of texts with the user's own embedding model. Texts of a similar meaning have vectors "
    "with a high dot product.",
    EmbedArguments,
    Vectors,
    embed,
)
