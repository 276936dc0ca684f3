"""`Output`, the base of all results, and the bounded text types that they are made of."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any

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


def found_instead(output: Mapping[str, Any]) -> str:
    """What a run without findings has, from the JSON members of its output, in a few words."""
    if output.get("cannot_do"):
        return "nothing done"
    return "a change" if output.get("diff") else "no findings"


@cache
def output_models() -> Mapping[str, type[Output]]:
    """The models defined in the modules of `agents.outputs`, by name; imports them all."""
    models: dict[str, type[Output]] = {}
    for module in iter_modules([str(Path(__file__).parent)]):
        members = vars(import_module(f"{__package__}.{module.name}"))
        models |= {
            name: member
            for name, member in members.items()
            if isinstance(member, type) and issubclass(member, Output) and member is not Output
        }
    return models
