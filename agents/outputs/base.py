"""`Output`, the base of all results, and the bounded text types that they are made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Word = Annotated[str, Field(max_length=80)]
Line = Annotated[str, Field(max_length=300)]
Paragraph = Annotated[str, Field(max_length=4_000)]
Document = Annotated[str, Field(max_length=60_000)]
Score = Annotated[float, Field(ge=0, le=100)]
Probability = Annotated[float, Field(ge=0, le=1)]


class Part(BaseModel):
    """A part of an output: unknown members are errors."""

    model_config = ConfigDict(extra="forbid")


class Output(Part):
    """The result of an agent. `cannot_do` is the reason why there is none, or empty."""

    cannot_do: Line = ""
