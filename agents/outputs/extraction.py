"""`Extraction`: values by the user's schema, each with its place in the source."""

from typing import Any

from pydantic import Field

from agents.outputs.base import Line, Part
from agents.outputs.checked import Checked


class ValueSpan(Part):
    """Where a value was read: half-open offsets in the source, and its line from 1."""

    field: Line
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    line: int = Field(ge=1)
    quote: Line


class Extraction(Checked):
    """Values by field. `missing` names required fields for which the source has no value."""

    values: dict[Line, Any] = Field(default_factory=dict, max_length=500)
    spans: list[ValueSpan] = Field(default_factory=list, max_length=2_000)
    missing: list[Line] = Field(default_factory=list, max_length=500)
