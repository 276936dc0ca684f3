"""`Body`: base of all request bodies and of the objects in them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

TEXT_TAG, IMAGE_TAG = "a part of text", "an image"
"""The tags of content parts, which pydantic adds to the place of an error in one."""


@dataclass(frozen=True, slots=True)
class IsOff:
    """Whether a value of an unsupported member means that it is not used: null, or one of some values."""

    values: tuple[Any, ...] = ()

    def __call__(self, value: Any) -> bool:
        """Whether the value is one of them."""
        # `True == 1` in Python: compare types too.
        return value is None or any(
            type(value) is type(one) and value == one for one in self.values
        )


nothing = IsOff()
"""Only null means that a member is not used."""


def nothing_or(*off: Any) -> IsOff:
    """Null, and values that mean "off"."""
    return IsOff(off)


class Body(BaseModel):
    """Types are strict: a boolean is not an integer, and "5" is not a number.

    A class is the table of its members: those that it declares are implemented, the text under each says what
    it does, and the tables below have the others that clients know. Whatever is in none of them is kept in
    `model_extra`, which `fields.undeclared_fields` checks. The JSON schema and docs/api.md have all of it.

    Attributes:
        without_effect: undeclared members that are accepted, with the reason why they have no effect.
        unsupported: undeclared members that are refused unless they are off.
        keeps_unknown: of an object in a body, whether other members are ignored and listed in the response,
            as those of a body always are. They are in what clients send back from other servers' answers; an
            object that says how to answer has none.
    """

    model_config = ConfigDict(
        strict=True,
        extra="allow",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    without_effect: ClassVar[Mapping[str, str]] = {}
    unsupported: ClassVar[Mapping[str, IsOff]] = {}
    keeps_unknown: ClassVar[bool] = False

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema of the declared members, with those of the two tables."""
        described = handler(schema)
        resolved = handler.resolve_ref_schema(described)
        members = resolved.setdefault("properties", {})
        for name, reason in cls.without_effect.items():
            members.setdefault(name, {"description": f"Without effect: {reason}."})
        for name, is_off in cls.unsupported.items():
            off = [None, *is_off.values]
            members.setdefault(
                name, {"enum": off, "description": "Not supported unless it is off."}
            )
        return described


class DefaultedBody(Body):
    """A body whose fields have defaults other than null: null is as good as leaving the field out."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: one for name, one in value.items() if one is not None}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """As that of every body; what may be left out may be null."""
        described = super().__get_pydantic_json_schema__(schema, handler)
        resolved = handler.resolve_ref_schema(described)
        needed = resolved.get("required", ())
        for name, member in resolved["properties"].items():
            if name not in needed and "enum" not in member:
                resolved["properties"][name] = _or_null(member)
        return described


def _or_null(member: JsonSchemaValue) -> JsonSchemaValue:
    choices = member.get("anyOf")
    if choices is None and not member.keys() & {"type", "$ref", "oneOf"}:
        return member  # any value
    if choices is not None and {"type": "null"} in choices:
        return member
    about: JsonSchemaValue = {
        name: member[name] for name in ("title", "description", "default") if name in member
    }
    value = {name: one for name, one in member.items() if name not in about}
    return {**about, "anyOf": [*(value.pop("anyOf", None) or [value]), {"type": "null"}]}
