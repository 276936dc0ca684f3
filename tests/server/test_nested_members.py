"""Members of the objects inside request bodies: each is known, without effect for a reason, or refused."""

import importlib
import pkgutil
from typing import get_args

import httpx
import pytest

import app.server.wire
from app.server.wire.body import Body
from app.server.wire.errors import ApiError
from app.server.wire.fields import undeclared_fields
from app.server.wire.llamacpp_schemas import ExtraFile, LlamaCppSampling
from app.server.wire.messages_schemas import Lenient
from app.server.wire.ollama_schemas import OllamaBody
from app.server.wire.schemas import ChatCompletionRequest
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

CHAT = {"model": "toy", "messages": [{"role": "user", "content": "hi"}]}

KEEP_UNKNOWN = {
    "CompactRequest",
    "ContextFields",
    "ConversationReference",
    "CreateConversation",
    "CreateConversationItems",
    "FunctionBody",
    "FunctionCall",
    "ImagePart",
    "InputFields",
    "InputTokensRequest",
    "Message",
    "ReasoningOptions",
    "ResponseRequest",
    "TextDocument",
    "TextFormat",
    "TextOptions",
    "TextPart",
    "ToolBody",
    "ToolCall",
    "UpdateConversation",
}
"""What clients send back from other servers' answers, documents and tools may have members of their own.

So may everything in other APIs (`FOREIGN`), and the bodies of the Responses API: agents send more
members with each version, and stop for good at a 400.
"""

LISTED_AS_A_WHOLE = {"ApiTool", "OtherBlock"}
"""Of these no single member is listed, because the object itself is."""


USER = {"role": "user", "content": "hi"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}
SCHEMA = {"name": "a", "schema": {}}
CHUNKS = {"max_chunk_size_tokens": 256, "chunk_overlap_tokens": 32}
CALL = {"function": {"name": "f"}}
PREDICATE = {"type": "predicate", "instructions": "a"}
FOREIGN = (OllamaBody, LlamaCppSampling, ExtraFile, Lenient)
"""Bodies of APIs whose servers ignore what they do not know; unknown members are listed there, too."""

SAMPLES = {
    "ExtraFile": {"text": "x"},
    "LlamaCppCompletionRequest": {"prompt": "hi"},
    "LlamaCppInfillRequest": {},
    "LlamaCppSampling": {},
    "OllamaBody": {},
    "OllamaCall": CALL,
    "OllamaChatRequest": {"model": "toy", "messages": [USER]},
    "OllamaEmbedRequest": {"model": "toy"},
    "OllamaFunction": {"name": "f"},
    "OllamaGenerateRequest": {"model": "toy", "prompt": "hi"},
    "OllamaGeneration": {"model": "toy"},
    "OllamaMessage": USER,
    "OllamaNameRequest": {"model": "toy"},
    "OllamaOptions": {},
    "AgentRunRequest": {"kind": "agent", "name": "a"},
    "AgentToolsRequest": {},
    "MadeCallBody": {"id": "c", "name": "f"},
    "ToolCallsRequest": {"calls": [{"id": "c", "name": "f"}]},
    "ApplyTemplateRequest": {"messages": [USER]},
    "ApprovalDecision": {"decision": "once"},
    "ChatControlRequest": {"id": "x", "action": "reasoning_end"},
    "ChatCompletionRequest": {"model": "toy", "messages": [USER]},
    "ChatFormFields": {},
    "ChatRetrieval": {"vector_store_ids": ["a"]},
    "ChunkingStrategy": {"type": "static", "static": CHUNKS},
    "ApiTool": {"type": "web_search_20260318"},
    "Block": {},
    "BlockSource": {"type": "text"},
    "ChangedTool": {},
    "ClientTool": {"name": "f"},
    "CompactionBlock": {"type": "compaction"},
    "CompleteUpload": {"part_ids": ["a"]},
    "CompletionRequest": {"model": "toy", "prompt": "hi"},
    "CountTokensRequest": {"model": "toy", "messages": [USER]},
    "CompactRequest": {"model": "toy"},
    "ContextFields": {"model": "toy"},
    "ConversationReference": {"id": "conv_1"},
    "CreateConversation": {},
    "CreateConversationItems": {"items": []},
    "CreateFileBatch": {"file_ids": ["a"]},
    "CreateStoreFile": {"file_id": "a"},
    "CreateUpload": {"bytes": 1, "filename": "a", "mime_type": "text/plain", "purpose": "vision"},
    "CreateVectorStore": {},
    "DecisionChoice": {"value": "a"},
    "DecisionLevel": {"label": "a"},
    "DecisionQuestion": PREDICATE,
    "DecisionRequest": {"model": "toy", "input": "hi", "questions": [PREDICATE]},
    "DefaultedBody": {},
    "DetokenizeRequest": {"tokens": [1]},
    "DocumentBlock": {"type": "document", "source": {"type": "text"}},
    "EmbeddingRequest": {"model": "minilm", "input": "hi"},
    "EmptyBody": {},
    "ExpiresAfter": {"anchor": "last_active_at", "days": 1},
    "FileExpiresAfter": {"anchor": "created_at", "seconds": 3600},
    "ForkRequest": {"parent": "a"},
    "FunctionBody": {"name": "f"},
    "FunctionCall": {"name": "f", "arguments": "{}"},
    "HybridSearch": {"embedding_weight": 1.0, "text_weight": 1.0},
    "ImageBlock": {"type": "image", "source": {"type": "base64"}},
    "ImagePart": IMAGE,
    "ImageUrl": IMAGE["image_url"],
    "InputMessage": USER,
    "InputFields": {"model": "toy"},
    "InputTokensRequest": {"model": "toy"},
    "JsonSchemaFormat": SCHEMA,
    "Message": {"role": "assistant", "content": "hi"},
    "Lenient": {},
    "MessagesRequest": {"model": "toy", "messages": [USER], "max_tokens": 1},
    "ModelChangeRequest": {},
    "ModelReloadRequest": {},
    "ModerationRequest": {"input": "hi"},
    "ModifyVectorStore": {},
    "OtherBlock": {"type": "container_upload"},
    "OutputConfig": {},
    "OutputFormat": {"type": "json_schema", "schema": {}},
    "PinRequest": {"tokens": [1], "pin_id": "a"},
    "PriceRequest": {"tokens": [1]},
    "PromptFields": {"model": "toy", "messages": [USER]},
    "RankingOptions": {},
    "Reasoning": {},
    "RedactedThinkingBlock": {"type": "redacted_thinking"},
    "ReasoningOptions": {},
    "RerankRequest": {"model": "minilm", "query": "a", "documents": ["b"]},
    "ResidencyRequest": {"tokens": [1]},
    "ResponseFormat": {"type": "json_schema", "json_schema": SCHEMA},
    "ResponseRequest": {"model": "toy"},
    "SamplingFields": {"model": "toy"},
    "SchedulingRequest": {},
    "SearchFields": {},
    "SearchResultBlock": {"type": "search_result", "source": "a", "title": "b", "content": []},
    "SearchVectorStore": {"query": "a"},
    "StaticChunking": CHUNKS,
    "StreamOptions": {},
    "StructuredOutputs": {},
    "TextBlock": {"type": "text", "text": "a"},
    "TextDocument": {"text": "a"},
    "TextFormat": {"type": "text"},
    "TextOptions": {},
    "TextPart": {"type": "text", "text": "a"},
    "ThinkingBlock": {"type": "thinking", "thinking": "a"},
    "CitationsConfig": {"enabled": True},
    "ThinkingConfig": {"type": "adaptive"},
    "TokenizeRequest": {"prompt": "a"},
    "ToolBody": {"type": "web_search"},
    "ToolLoopBody": {},
    "ToolChangeBlock": {"type": "tool_addition", "tool": {}},
    "ToolCall": {"id": "a", "function": {"name": "f", "arguments": "{}"}},
    "ToolReferenceBlock": {"type": "tool_reference", "tool_name": "f"},
    "ToolResultBlock": {"type": "tool_result", "tool_use_id": "t"},
    "ToolUseBlock": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    "ToolUseChoice": {"type": "auto"},
    "UnpinRequest": {"pin_id": "a"},
    "UpdateConversation": {},
    "UpdateStoreFile": {"attributes": {}},
}
"""A valid value of every body, and of every object in one."""


def all_bodies():
    for module in pkgutil.iter_modules(app.server.wire.__path__, "app.server.wire."):
        importlib.import_module(module.name)
    found, pending = set(), [Body]
    while pending:
        for kind in pending.pop().__subclasses__():
            if kind not in found:
                found.add(kind)
                pending.append(kind)
    return sorted(found, key=lambda kind: kind.__name__)


def bodies_in(annotation):
    if isinstance(annotation, type) and issubclass(annotation, Body):
        yield annotation
    for part in get_args(annotation):
        yield from bodies_in(part)


def nested():
    """Every (body, field, object inside it)."""
    for body in all_bodies():
        for name, field in body.model_fields.items():
            for inner in bodies_in(field.annotation):
                yield pytest.param(body, name, inner, id=f"{body.__name__}.{name}.{inner.__name__}")


def test_every_body_has_a_sample():
    assert {kind.__name__ for kind in all_bodies()} == SAMPLES.keys()


def test_only_these_objects_keep_unknown_members():
    strict = [kind for kind in all_bodies() if not issubclass(kind, FOREIGN)]
    assert {kind.__name__ for kind in strict if kind.keeps_unknown} == KEEP_UNKNOWN


@pytest.mark.parametrize(("body", "name", "inner"), nested())
def test_no_member_of_an_object_is_dropped(body, name, inner):
    strange = inner.model_validate(SAMPLES[inner.__name__] | {"surprise": 1})
    plain = body.model_validate(SAMPLES[body.__name__])
    is_list = "list[" in str(body.model_fields[name].annotation)
    outer = plain.model_copy(update={name: [strange] if is_list else strange})
    path = f"{name}[0].surprise" if is_list else f"{name}.surprise"
    if inner.__name__ in LISTED_AS_A_WHOLE:
        assert undeclared_fields(outer, strict=False).unknown == []
        return
    if inner.keeps_unknown:
        assert undeclared_fields(outer, strict=False).unknown == [path]
        return
    with pytest.raises(ApiError) as error:
        undeclared_fields(outer, strict=False)
    assert (error.value.status_code, error.value.param) == (400, path)


@pytest.mark.parametrize("kind", all_bodies(), ids=lambda kind: kind.__name__)
def test_every_field_that_may_be_left_out_may_be_null(kind):
    sample = SAMPLES[kind.__name__]
    names = [
        field.alias or name for name, field in kind.model_fields.items() if not field.is_required()
    ]
    left_out = kind.model_validate(sample)
    for name in names:
        given = kind.model_validate(sample | {name: None})
        if name not in sample and name != "pin_id":  # drawn anew each time
            assert given == left_out, name


@pytest.fixture(scope="module")
def client():
    with live(ScriptedEngine(words("ok"))) as server, httpx.Client(base_url=server.url) as http:
        yield http


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": {"type": "json_object", "strict": True}}, "response_format.strict"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {}, "regex": "x"},
                }
            },
            "response_format.json_schema.regex",
        ),
        ({"stream": True, "stream_options": {"usage": True}}, "stream_options.usage"),
        (
            {"stream": True, "stream_options": {"include_obfuscation": True}},
            "stream_options.include_obfuscation",
        ),
        ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs.structural_tag"),
        ({"logit_bias": {"a": 1}}, "logit_bias"),
        (
            {"messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "data:,", "max_pixels": 3}}]}]},
            "messages[0].content[0].image_url.max_pixels",
        ),
        (
            {"retrieval": {"vector_store_ids": ["a"], "ranking_options": {"rerank": True}}},
            "retrieval.ranking_options.rerank",
        ),
        ({"retrieval": {"vector_store_ids": ["a"], "top_k": 3}}, "retrieval.top_k"),
    ],
)  # fmt: skip
def test_an_unknown_member_is_refused_by_its_path(client, fields, param):
    response = client.post("/v1/chat/completions", json=CHAT | fields)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_a_member_that_is_off_passes(client):
    options = {"include_usage": True, "include_obfuscation": False}
    response = client.post(
        "/v1/chat/completions", json=CHAT | {"stream": True, "stream_options": options}
    )
    assert response.status_code == 200


def test_members_of_other_servers_answers_are_ignored_and_listed(client):
    """A history as litellm and OpenRouter send it back."""
    answer = {
        "role": "assistant",
        "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
        "annotations": [{"type": "url_citation"}],
        "reasoning_details": [],
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "index": 0,
                "function": {"name": "f", "arguments": "{}", "parsed_arguments": None},
            }
        ],
    }
    tool = {"role": "tool", "tool_call_id": "a", "content": None}
    messages = [*CHAT["messages"], answer, tool]
    response = client.post("/v1/chat/completions", json=CHAT | {"messages": messages})
    assert response.status_code == 200
    assert response.headers["x-pravaha-ignored-fields"].split(",") == [
        "messages[1].reasoning_details",
        "messages[1].tool_calls[0].index",
        "messages[1].tool_calls[0].function.parsed_arguments",
    ]


def test_a_rule_of_whole_bodies_does_not_hold_inside_an_object():
    with pytest.raises(ApiError, match=r"no field `stream_options\.user`"):
        undeclared_fields(
            ChatCompletionRequest.model_validate(
                CHAT | {"stream": True, "stream_options": {"user": "me"}}
            ),
            strict=False,
        )
