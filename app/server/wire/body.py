"""`Body`: base of all request bodies and of the objects in them."""

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """Types are strict: a boolean is not an integer, and "5" is not a number.

    Undeclared fields are kept in `model_extra`, which `fields.unknown_fields` checks.
    """

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, allow_inf_nan=False)
