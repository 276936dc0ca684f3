"""`Body`: base of all request bodies and of the objects in them."""

from pydantic import BaseModel, ConfigDict

TEXT_TAG, IMAGE_TAG = "a part of text", "an image"
"""The tags of content parts, which pydantic adds to the place of an error in one."""


class Body(BaseModel):
    """Types are strict: a boolean is not an integer, and "5" is not a number.

    Undeclared fields are kept in `model_extra`, which `fields.unknown_fields` checks.
    """

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, allow_inf_nan=False)
