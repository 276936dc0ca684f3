"""`Schemas`: the JSON schemas of bodies and answers, as components of an OpenAPI document."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from app.server.wire.body import Body

REF = "#/components/schemas/"
Mode = Literal["validation", "serialization"]
"""Of what is read, and of what is answered."""


class Schemas:
    """The schemas of some types, and the components that they refer to.

    Attributes:
        components: by name.
    """

    def __init__(self, read: Iterable[Any], answered: Iterable[Any]) -> None:
        """Generate the schemas.

        Args:
            read: types of bodies.
            answered: types of answers.
        """
        whole, shown = dict.fromkeys(read), dict.fromkeys(answered)
        inputs: list[tuple[Any, Mode, TypeAdapter[Any]]] = [
            *((kind, "validation", TypeAdapter(kind)) for kind in whole),
            *((kind, "serialization", TypeAdapter(kind)) for kind in shown),
        ]
        self._by_kind, definitions = TypeAdapter.json_schemas(
            inputs, ref_template=REF + "{model}", schema_generator=_Generator
        )
        self.components: dict[str, JsonSchemaValue] = definitions["$defs"]
        for kind in body_classes():
            # Unknown members of a whole body are ignored; those of an object in one may be refused.
            if kind.__name__ in self.components and not kind.keeps_unknown and kind not in whole:
                self.components[kind.__name__]["additionalProperties"] = False

    def read(self, kind: Any) -> JsonSchemaValue:
        """The schema of a type of bodies."""
        return self._by_kind[kind, "validation"]

    def answered(self, kind: Any) -> JsonSchemaValue:
        """The schema of a type of answers."""
        return self._by_kind[kind, "serialization"]


def body_classes() -> Iterator[type[Body]]:
    """Every class of bodies and of objects in them, each once."""
    seen: set[type[Body]] = set()
    pending: list[type[Body]] = [Body]
    while pending:
        for kind in pending.pop().__subclasses__():
            if kind not in seen:
                seen.add(kind)
                pending.append(kind)
                yield kind


class _Generator(GenerateJsonSchema):
    """Schemas without the titles that only repeat the members' names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        # Where a function tells the members apart, a value may match several of their schemas.
        union = super().tagged_union_schema(schema)
        if "oneOf" in union and "discriminator" not in union:
            union["anyOf"] = union.pop("oneOf")
        return union

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        return {"type": "string", "format": "binary"}
