"""`Body`: base of all request bodies and of the objects in them."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

TEXT_TAG, IMAGE_TAG = "a part of text", "an image"
"""The tags of content parts, which pydantic adds to the place of an error in one."""

IsOff = Callable[[Any], bool]
"""Whether a value of an unsupported field means that it is not used."""


def nothing(value: Any) -> bool:
    """Only null."""
    return value is None


def nothing_or(*off: Any) -> IsOff:
    """Null, and values that mean "off"."""
    # `True == 1` in Python: compare types too.
    return lambda value: (
        value is None or any(type(value) is type(one) and value == one for one in off)
    )


class Body(BaseModel):
    """Types are strict: a boolean is not an integer, and "5" is not a number.

    Undeclared fields are kept in `model_extra`, which `fields.unknown_fields` checks. The rules of a whole
    body are there; those of an object inside one are the three members below.

    Attributes:
        without_effect: undeclared members that are accepted, with the reason why they have no effect.
        unsupported: undeclared members that are refused unless they are off.
        keeps_unknown: whether other members are ignored and listed in the response. They are in what clients
            send back from other servers' answers; an object that says how to answer has none.
    """

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, allow_inf_nan=False)

    without_effect: ClassVar[Mapping[str, str]] = {}
    unsupported: ClassVar[Mapping[str, IsOff]] = {}
    keeps_unknown: ClassVar[bool] = False


class DefaultedBody(Body):
    """A body whose fields have defaults other than null: null is as good as leaving the field out."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: one for name, one in value.items() if one is not None}
