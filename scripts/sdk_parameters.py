# /// script
# requires-python = ">=3.11"
# dependencies = ["anthropic==2.14.0", "ollama==0.6.3", "openai==3.54.0"]
# ///
"""Writes the names of the parameters of the official clients' methods, and of the objects in them.

uv run scripts/sdk_parameters.py

A test holds tests/server/sdk_parameters.json against the tables of fields: each name has a row. Raise the
versions above, run this again, and the test lists what is new.
"""

import inspect
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_args

OUTPUT = Path(__file__).parents[1] / "tests/server/sdk_parameters.json"
TRANSPORT = {
    "self", "extra_headers", "extra_query", "extra_body", "timeout",
    "betas", "user_profile_id", "workspace_id",  # headers
}  # fmt: skip

METHODS: Mapping[str, Mapping[str, str]] = {
    "openai": {
        "resources.chat.Completions.create": "POST /v1/chat/completions",
        "resources.Completions.create": "POST /v1/completions",
        "resources.Decisions.create": "POST /v1/decisions",
        "resources.Embeddings.create": "POST /v1/embeddings",
        "resources.Moderations.create": "POST /v1/moderations",
        "resources.Models.retrieve": "GET /v1/models/{name}",
        "resources.responses.Responses.create": "POST /v1/responses",
        "resources.responses.Responses.retrieve": "GET /v1/responses/{response_id}",
        "resources.responses.Responses.delete": "DELETE /v1/responses/{response_id}",
        "resources.responses.Responses.cancel": "POST /v1/responses/{response_id}/cancel",
        "resources.responses.Responses.compact": "POST /v1/responses/compact",
        "resources.responses.InputItems.list": "GET /v1/responses/{response_id}/input_items",
        "resources.responses.InputTokens.count": "POST /v1/responses/input_tokens",
        "resources.conversations.Conversations.create": "POST /v1/conversations",
        "resources.conversations.Conversations.retrieve": "GET /v1/conversations/{conversation_id}",
        "resources.conversations.Conversations.update": "POST /v1/conversations/{conversation_id}",
        "resources.conversations.Conversations.delete": "DELETE /v1/conversations/{conversation_id}",
        "resources.conversations.Items.create": "POST /v1/conversations/{conversation_id}/items",
        "resources.conversations.Items.list": "GET /v1/conversations/{conversation_id}/items",
        "resources.conversations.Items.retrieve": (
            "GET /v1/conversations/{conversation_id}/items/{item_id}"
        ),
        "resources.conversations.Items.delete": (
            "DELETE /v1/conversations/{conversation_id}/items/{item_id}"
        ),
        "resources.Files.create": "POST /v1/files",
        "resources.Files.list": "GET /v1/files",
        "resources.Files.retrieve": "GET /v1/files/{file_id}",
        "resources.Files.content": "GET /v1/files/{file_id}/content",
        "resources.Files.delete": "DELETE /v1/files/{file_id}",
        "resources.uploads.Uploads.create": "POST /v1/uploads",
        "resources.uploads.Uploads.complete": "POST /v1/uploads/{upload_id}/complete",
        "resources.uploads.Uploads.cancel": "POST /v1/uploads/{upload_id}/cancel",
        "resources.uploads.Parts.create": "POST /v1/uploads/{upload_id}/parts",
        "resources.vector_stores.VectorStores.create": "POST /v1/vector_stores",
        "resources.vector_stores.VectorStores.list": "GET /v1/vector_stores",
        "resources.vector_stores.VectorStores.update": "POST /v1/vector_stores/{store_id}",
        "resources.vector_stores.VectorStores.search": "POST /v1/vector_stores/{store_id}/search",
        "resources.vector_stores.Files.create": "POST /v1/vector_stores/{store_id}/files",
        "resources.vector_stores.Files.list": "GET /v1/vector_stores/{store_id}/files",
        "resources.vector_stores.Files.update": "POST /v1/vector_stores/{store_id}/files/{file_id}",
        "resources.vector_stores.FileBatches.create": (
            "POST /v1/vector_stores/{store_id}/file_batches"
        ),
        "resources.vector_stores.FileBatches.list_files": (
            "GET /v1/vector_stores/{store_id}/file_batches/{batch_id}/files"
        ),
    },
    "anthropic": {
        "resources.Messages.create": "POST /v1/messages",
        "resources.Messages.count_tokens": "POST /v1/messages/count_tokens",
        "resources.beta.messages.Messages.create": "POST /v1/messages",
        "resources.beta.messages.Messages.count_tokens": "POST /v1/messages/count_tokens",
        "resources.Models.list": "GET /v1/models",
        "resources.Models.retrieve": "GET /v1/models/{name}",
    },
    "ollama": {
        "Client.chat": "POST /api/chat",
        "Client.generate": "POST /api/generate",
        "Client.embed": "POST /api/embed",
        "Client.embeddings": "POST /api/embeddings",
        "Client.show": "POST /api/show",
        "Client.pull": "POST /api/pull",
        "Client.delete": "DELETE /api/delete",
    },
}
"""The endpoint of each method. What Pravāha has no endpoint for is not listed."""

OBJECTS: Mapping[str, Mapping[str, str]] = {
    "openai": {
        "types.chat.ChatCompletionSystemMessageParam": "Message",
        "types.chat.ChatCompletionDeveloperMessageParam": "Message",
        "types.chat.ChatCompletionUserMessageParam": "Message",
        "types.chat.ChatCompletionAssistantMessageParam": "Message",
        "types.chat.ChatCompletionToolMessageParam": "Message",
        "types.chat.ChatCompletionContentPartTextParam": "TextPart",
        "types.chat.ChatCompletionContentPartImageParam": "ImagePart",
        "types.chat.ChatCompletionStreamOptionsParam": "StreamOptions",
        "types.chat.ChatCompletionFunctionToolParam": "ToolBody",
        "types.shared_params.FunctionDefinition": "FunctionBody",
        "types.shared_params.ResponseFormatJSONSchema": "ResponseFormat",
        "types.shared_params.Reasoning": "ReasoningOptions",
        "types.decision_create_params.QuestionQuestionParamPredicate": "DecisionQuestion",
        "types.decision_create_params.QuestionQuestionParamChoice": "DecisionQuestion",
        "types.decision_create_params.QuestionQuestionParamScore": "DecisionQuestion",
        "types.decision_create_params.QuestionQuestionParamChoiceChoice": "DecisionChoice",
        "types.decision_create_params.QuestionQuestionParamScoreLevel": "DecisionLevel",
        "types.responses.ResponseTextConfigParam": "TextOptions",
        "types.responses.ResponseFormatTextJSONSchemaConfigParam": "TextFormat",
    },
    "anthropic": {
        "types.MessageParam": "InputMessage",
        "types.TextBlockParam": "TextBlock",
        "types.ImageBlockParam": "ImageBlock",
        "types.DocumentBlockParam": "DocumentBlock",
        "types.SearchResultBlockParam": "SearchResultBlock",
        "types.ThinkingBlockParam": "ThinkingBlock",
        "types.ToolUseBlockParam": "ToolUseBlock",
        "types.ToolResultBlockParam": "ToolResultBlock",
        "types.ToolReferenceBlockParam": "ToolReferenceBlock",
        "types.ToolParam": "ClientTool",
        "types.ToolChoiceToolParam": "ToolUseChoice",
        "types.ThinkingConfigEnabledParam": "ThinkingConfig",
        "types.ThinkingConfigAdaptiveParam": "ThinkingConfig",
        "types.OutputConfigParam": "OutputConfig",
        "types.beta.BetaMessageParam": "InputMessage",
        "types.beta.BetaToolParam": "ClientTool",
        "types.beta.BetaToolResultBlockParam": "ToolResultBlock",
        "types.beta.BetaToolUseBlockParam": "ToolUseBlock",
        "types.beta.BetaOutputConfigParam": "OutputConfig",
    },
    "ollama": {
        "Options": "OllamaOptions",
        "Message": "OllamaMessage",
        "Message.ToolCall": "OllamaCall",
        "Message.ToolCall.Function": "OllamaFunction",
    },
}
"""The class of a body's object of each object that the clients send."""


def members(kind: Any) -> list[str]:
    """The names of a model's fields, or of the members of typed dicts."""
    fields = getattr(kind, "model_fields", None)
    if fields is not None:
        return sorted(fields)
    return sorted({name for one in get_args(kind) or (kind,) for name in one.__annotations__})


def parameters(method: Any) -> list[str]:
    """The names of a method's parameters that are sent."""
    return sorted(set(inspect.signature(method).parameters) - TRANSPORT)


def main() -> None:
    """Write the file."""
    found = {
        package: {
            "version": metadata.version(package),
            "methods": {
                path: {
                    "endpoint": endpoint,
                    "parameters": parameters(resolve_name(f"{package}.{path}")),
                }
                for path, endpoint in methods.items()
            },
            "objects": {
                path: {"body": body, "members": members(resolve_name(f"{package}.{path}"))}
                for path, body in OBJECTS[package].items()
            },
        }
        for package, methods in METHODS.items()
    }
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
