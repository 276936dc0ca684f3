"""Schemas of tools as coding agents and MCP servers declare them, with the keywords that they use."""

from typing import Any

TEXT: dict[str, Any] = {"type": "string"}
TODO_ITEM = {
    "type": "object",
    "title": "TodoItem",
    "properties": {
        "id": TEXT,
        "content": {"type": "string", "minLength": 1},
        "status": {"$ref": "#/$defs/TodoStatus"},
        "priority": {"anyOf": [{"$ref": "#/$defs/Priority"}, {"type": "null"}], "default": None},
    },
    "required": ["id", "content"],
}
AGENT_TOOLS: dict[str, dict[str, Any]] = {
    "todo": {  # pydantic, with definitions
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["read", "write"]},
            "todos": {
                "anyOf": [
                    {"type": "array", "items": {"$ref": "#/$defs/TodoItem"}},
                    {"type": "null"},
                ],
                "default": None,
            },
        },
        "required": ["action"],
        "$defs": {
            "TodoItem": TODO_ITEM,
            "TodoStatus": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
            "Priority": {"type": "string", "enum": ["low", "high"]},
        },
    },
    "ask": {  # zod, with $schema and counts
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": {
                    "type": "object",
                    "properties": {
                        "question": {"type": "string"},
                        "multiSelect": {"type": "boolean", "default": False},
                        "options": {
                            "type": "array",
                            "minItems": 2,
                            "items": {
                                "type": "object",
                                "properties": {"label": TEXT},
                                "required": ["label"],
                                "additionalProperties": False,
                            },
                        },
                    },
                    "required": ["question", "options"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["questions"],
        "additionalProperties": False,
    },
    "read": {
        "type": "object",
        "properties": {
            "file_path": TEXT,
            "offset": {"type": "integer", "minimum": 0, "maximum": 9007199254740991},
            "limit": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991},
            "pages": {"type": "string", "pattern": "^[0-9]+(-[0-9]+)?$"},
        },
        "required": ["file_path"],
        "additionalProperties": False,
    },
    "send_mail": {  # zod's e-mail pattern begins with look-ahead
        "type": "object",
        "properties": {
            "to": {
                "type": "string",
                "format": "email",
                "pattern": r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@"
                r"([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
            },
            "body": {"type": "string", "maxLength": 65536},
            "priority": {"type": ["integer", "null"], "exclusiveMinimum": 0},
        },
        "required": ["to", "body"],
    },
    "apply": {  # Kubernetes: unanchored patterns, free-form objects
        "type": "object",
        "properties": {
            "namespace": {"type": "string", "pattern": "[a-z0-9]([-a-z0-9]*[a-z0-9])?"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "manifest": {"type": "object", "additionalProperties": True},
        },
        "required": ["manifest"],
    },
    "tree": {  # recursion
        "type": "object",
        "properties": {"root": {"$ref": "#/definitions/node"}},
        "required": ["root"],
        "definitions": {
            "node": {
                "type": "object",
                "properties": {
                    "name": TEXT,
                    "children": {"type": "array", "items": {"$ref": "#/definitions/node"}},
                },
                "required": ["name"],
            }
        },
    },
    "edit": {
        "type": "object",
        "properties": {
            "edits": {
                "type": "array",
                "items": {
                    "oneOf": [
                        {
                            "type": "object",
                            "properties": {"kind": {"const": "add"}, "text": TEXT},
                            "required": ["kind"],
                        },
                        {
                            "type": "object",
                            "properties": {"kind": {"const": "cut"}, "line": {"type": "integer"}},
                            "required": ["kind"],
                        },
                    ]
                },
            },
            "tags": {"type": "array", "items": TEXT, "uniqueItems": True},
            "color": {"type": "string", "format": "color"},
        },
    },
    "now": {"type": "object", "properties": {}},
    "bare": {},
    "no_type": {"properties": {"x": {"description": "anything"}}},
}  # fmt: skip
