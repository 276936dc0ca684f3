"""JSON schemas in a few words."""

import pytest

from app.server.openapi.type_text import type_text


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({}, "any value"),
        ({"type": "string", "maxLength": 64}, "string (at most 64 characters)"),
        ({"type": "integer", "minimum": 0, "exclusiveMaximum": 2**31}, "integer ≥ 0"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}, "number > 0 and ≤ 1.5"),
        ({"type": "number", "maximum": 86_400_000.0}, "number ≤ 86,400,000"),
        ({"type": "object", "maxLength": 9, "maxProperties": 16}, "object (at most 16 members)"),
        ({"enum": ["a", None, False, 1]}, '"a" or null or false or 1'),
        ({"const": "a"}, '"a"'),
        ({"$ref": "#/components/schemas/Message"}, "Message"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string"),
        ({"anyOf": [{"type": "null"}]}, "null"),
        (
            {
                "type": "array",
                "maxItems": 1000,
                "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            },
            "list of (string or integer) (at most 1,000 items)",
        ),
    ],
)
def test_a_schema_in_words(schema, text):
    assert type_text(schema) == text
