"""The tokenizer over HTTP.

`POST /tokenize` and `POST /detokenize` (vLLM's shapes and llama.cpp's), `POST /apply-template`,
`GET /tokenizer_info` and `GET /tokenizer`.
"""

import asyncio
import gzip
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson
from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.chat_form import chat_form
from app.server.calls.chat_images import refuse_images
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.model import LoadedModel, ModelName, loaded_model, off_loop
from app.server.calls.prompts import chat_prompt, chat_text, text_ids
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.answers.engine import (
    DetokenizedText,
    RenderedTemplate,
    TokenizedText,
    TokenizerInfo,
)
from app.server.wire.described import answers
from app.server.wire.errors import bad_request
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import (
    ApplyTemplateRequest,
    ChatFormFields,
    DetokenizeRequest,
    TokenizeRequest,
)
from app.server.wire.tool_schemas import functions_of
from engine.text.tokenizer import Tokenizer
from engine.text.tool_messages import template_tools

router = APIRouter(route_class=JsonRoute)


@router.post("/tokenize")
@requires("infer")
@answers(TokenizedText)
async def tokenize(body: TokenizeRequest, request: Request) -> Response:
    """Token ids of a prompt or of a conversation."""
    context = server_context(request)
    check_extra_fields(request, body)
    model = loaded_model(context, body.model)
    ids = await _ids(model, body)
    answer: dict[str, Any] = {
        "count": len(ids),
        "max_model_len": model.info.context_length,
        "tokens": ids,
    }
    tokenizer = model.tokenizer
    if body.return_token_strs:
        answer["token_strs"] = [tokenizer.token_bytes(one).decode(errors="replace") for one in ids]
    if body.with_pieces:
        answer["tokens"] = [{"id": one, "piece": _piece(tokenizer.token_bytes(one))} for one in ids]
    return json_response(answer)


async def _ids(model: LoadedModel, body: TokenizeRequest) -> Sequence[int]:
    texts = [text for text in (body.prompt, body.content) if text is not None]
    if len(texts) + (body.messages is not None) != 1:
        raise bad_request("Give one of `prompt`, `content` and `messages`.", param="prompt")
    if body.messages is None:
        for name in ChatFormFields.model_fields:
            if getattr(body, name):
                raise bad_request(
                    f"`{name}` is for `messages`: a prompt has no template.", param=name
                )
        # llama.cpp's `content` has its default, vLLM's `prompt` the other.
        add_bos = body.prompt is not None if body.add_bos is None else body.add_bos
        special = body.parse_special is not False
        return await text_ids(model, texts[0], add_bos=add_bos, special=special)
    for name in ("add_special_tokens", "add_special", "parse_special"):
        if getattr(body, name):
            raise bad_request(
                f"`{name}` is for a `prompt`: of `messages` the chat template alone writes special tokens.",
                param=name,
            )
    refuse_images(body.messages)
    tools = template_tools(functions_of(body.tools))
    return (await chat_prompt(model, body.messages, chat_form(body), tools=tools)).ids


def _piece(token: bytes) -> str | list[int]:
    """The text of a token, or its bytes if they are a part of a character."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return list(token)


@router.post("/detokenize")
@requires("infer")
@answers(DetokenizedText)
async def detokenize(body: DetokenizeRequest, request: Request) -> Response:
    """Text of token ids."""
    context = server_context(request)
    check_extra_fields(request, body)
    model = loaded_model(context, body.model)
    text = await off_loop(
        len(body.tokens),
        lambda: model.tokenizer.decode(body.tokens, skip_special=bool(body.skip_special_tokens)),
    )
    answer: dict[str, Any] = {"prompt": text, "content": text}
    if body.return_token_texts:
        answer["token_texts"] = await off_loop(
            len(body.tokens), lambda: model.tokenizer.token_texts(body.tokens)
        )
    return json_response(answer)


@router.post("/apply-template")
@requires("infer")
@answers(RenderedTemplate)
async def apply_template(body: ApplyTemplateRequest, request: Request) -> Response:
    """A conversation rendered by the model's chat template."""
    context = server_context(request)
    check_extra_fields(request, body)
    model = loaded_model(context, body.model)
    refuse_images(body.messages)
    tools = template_tools(functions_of(body.tools))
    text = await chat_text(model, body.messages, chat_form(body), tools=tools)
    return json_response({"prompt": text})


@router.get("/tokenizer_info")
@requires("infer")
@answers(TokenizerInfo)
async def tokenizer_info(request: Request, model: ModelName = None) -> Response:
    """The tokenizer's fingerprint, its chat template and the text of its control tokens."""
    tokenizer = loaded_model(server_context(request), model).tokenizer
    names = ("bos_token", "eos_token", "unk_token", "pad_token")
    return json_response(
        {name: tokenizer.named_token(name) for name in names}
        | {
            "fingerprint": tokenizer.fingerprint,
            "add_bos_token": tokenizer.add_bos,
            "chat_template": tokenizer.chat_template,
            "control_tokens": tokenizer.control_tokens.spellings,
        }
    )


@router.get("/tokenizer")
@requires("infer")
@answers(dict[str, Any])
async def whole_tokenizer(request: Request, model: ModelName = None) -> Response:
    """Vocabulary, merges and chat template, from which `HttpClient` makes an equal tokenizer.

    Compressed whatever the client accepts: half a megabyte instead of two for 49,000 tokens.
    """
    tokenizer = loaded_model(server_context(request), model).tokenizer
    body = await asyncio.to_thread(_compressed, tokenizer)
    return Response(body, media_type="application/json", headers={"content-encoding": "gzip"})


@lru_cache(maxsize=2)
def _compressed(tokenizer: Tokenizer) -> bytes:
    return gzip.compress(orjson.dumps(tokenizer.to_fields()), compresslevel=6)
