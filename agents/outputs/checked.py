"""`Checked`: the base of results that may carry findings about a text that was given to be checked."""

from pydantic import Field

from agents.outputs.base import Output
from agents.outputs.findings import FindingRecord


class Checked(Output):
    """A result with the defects of the output that the task gave; none if it gave none."""

    findings: list[FindingRecord] = Field(default_factory=list)
