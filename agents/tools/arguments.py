"""`Arguments`, the base of the tools' input models."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Arguments(BaseModel):
    """Input of a tool: unknown members are errors."""

    model_config = ConfigDict(extra="forbid")


RelativePath = Annotated[str, Field(min_length=1, max_length=1_000)]
