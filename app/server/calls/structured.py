"""Structured output: the `Grammar` from any of the API's fields that constrain an answer."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from starlette.requests import Request

from app.server.calls.model import loaded_model
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request
from app.server.wire.fields import header_value
from app.server.wire.schemas import SamplingFields
from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar
from engine.grammar.call_plan import CallPlanner
from engine.grammar.compiler import CompiledGrammar
from engine.grammar.gbnf import gbnf_grammar
from engine.runtime.engine import AsyncPravahaEngine

FieldGrammar = tuple[str, Grammar]
"""A field, as a path into the body, and its grammar."""


GRAMMAR_FIELDS = frozenset(
    {
        "response_format",
        "structured_outputs",
        "json_schema",
        "guided_json",
        "guided_regex",
        "guided_choice",
        "guided_grammar",
        "grammar",
    }
)


def grammar_of(body: SamplingFields) -> Grammar | None:
    """The grammar that a body's answer must match, or None.

    Raises:
        ApiError: 400 for two grammars or an invalid combination of fields.
    """
    found = _field_grammar(body)
    return None if found is None else found[1]


async def build_grammar(
    request: Request, context: ServerContext, body: SamplingFields, grammar: Grammar | None
) -> None:
    """Compile a grammar before its request is submitted, so that an invalid one is a 400.

    The response lists what of a schema is not enforced.
    A grammar whose clients have all left is not compiled.

    Args:
        request: the HTTP request.
        context: the server.
        body: the request body; an error names its field.
        grammar: the body's grammar as `grammar_of` returned it; None does nothing.

    Raises:
        ApiError: 400 naming the field; 503, the drain expired.
        ClientDisconnected: the client disconnected.
        QueueFull, EngineUnavailable: from the engine.
    """
    if grammar is None:
        return
    try:
        engine = loaded_model(context, body.model).engine
        await _build(request, context, engine, grammar)
    except InvalidRequest as error:
        found = _field_grammar(body)
        raise bad_request(str(error), param=found and found[0]) from error


async def build_call_grammar(
    request: Request, context: ServerContext, engine: AsyncPravahaEngine, planner: CallPlanner
) -> None:
    """Compile the grammar of a call before it is needed; calls are not constrained if it cannot be built.

    The response lists what of the tools' schemas is not enforced.

    Raises:
        ClientDisconnected, QueueFull, EngineUnavailable: as `build_grammar`.
    """
    grammar = planner.grammar(1)
    if grammar is None:
        return
    try:
        await _build(request, context, engine, grammar)
    except InvalidRequest:
        planner.constrains = False
        add_not_enforced(request, [f"{name}:parameters" for name in planner.tools.callable])


async def _build(
    request: Request, context: ServerContext, engine: AsyncPravahaEngine, grammar: Grammar
) -> None:
    build = engine.build_grammar(grammar)
    if build.done():
        compiled = build.result()
    else:
        compiled = await while_connected(request, context, _result(build))
    add_not_enforced(request, compiled.not_enforced)


def add_not_enforced(request: Request, names: Sequence[str]) -> None:
    """Add names to the header that lists what an answer may violate; each is listed once."""
    before: list[str] = getattr(request.state, "not_enforced_names", [])
    listed = list(dict.fromkeys([*before, *names]))
    request.state.not_enforced_names = listed
    request.state.not_enforced = header_value(listed)


async def _result(build: Future[CompiledGrammar]) -> CompiledGrammar:
    """Wait for a build; a cancellation of this call cancels it."""
    return await asyncio.wrap_future(build)


def _field_grammar(body: SamplingFields) -> FieldGrammar | None:
    found = [
        *_response_format(body),
        *_guided(body),
        *_structured_outputs(body),
        *_llamacpp(body),
    ]
    if len(found) > 1:
        raise bad_request(
            f"`{found[0][0]}` and `{found[1][0]}` both constrain the answer; give only one.",
            param=found[1][0],
        )
    return found[0] if found else None


def _response_format(body: SamplingFields) -> list[FieldGrammar]:
    response_format = body.response_format
    if response_format is None:
        return []
    named, bare = response_format.json_schema, response_format.schema_
    if named is not None and response_format.type != "json_schema":
        raise bad_request(
            "`response_format.json_schema` is only allowed with type `json_schema`.",
            param="response_format.json_schema",
        )
    if bare is not None and (named is not None or response_format.type == "text"):
        raise bad_request(
            "`response_format.schema` is only allowed with type `json_object`, or with type "
            "`json_schema` in place of `response_format.json_schema`.",
            param="response_format.schema",
        )
    if response_format.type == "json_schema" and named is None and bare is None:
        raise bad_request(
            "Type `json_schema` needs `response_format.json_schema`.",
            param="response_format.json_schema",
        )
    if named is not None:
        path = "response_format.json_schema.schema"
        return [(path, _make(path, Grammar.json_schema, named.schema_))]
    if bare or (bare is not None and response_format.type == "json_schema"):
        path = "response_format.schema"
        return [(path, _make(path, Grammar.json_schema, bare))]
    # An empty schema of a `json_object` adds nothing.
    return [] if response_format.type == "text" else [("response_format", Grammar.json_object())]


def _guided(body: SamplingFields) -> list[FieldGrammar]:
    return _grammars(
        {
            "json_schema": body.json_schema,
            "guided_json": body.guided_json,
            "guided_regex": body.guided_regex,
            "guided_choice": body.guided_choice,
            "guided_grammar": body.guided_grammar,
        }
    )


def _llamacpp(body: SamplingFields) -> list[FieldGrammar]:
    """llama.cpp's field, in its format GBNF; its clients send an empty text for none."""
    return [("grammar", _make("grammar", gbnf_grammar, body.grammar))] if body.grammar else []


def _structured_outputs(body: SamplingFields) -> list[FieldGrammar]:
    given = body.structured_outputs
    if given is None:
        return []
    found = _grammars(
        {
            "structured_outputs.json": given.json_,
            "structured_outputs.regex": given.regex,
            "structured_outputs.choice": given.choice,
            "structured_outputs.grammar": given.grammar,
        }
    )
    if given.json_object:
        found.append(("structured_outputs.json_object", Grammar.json_object()))
    return found


def _grammars(fields: dict[str, Any]) -> list[FieldGrammar]:
    """Grammars of the fields that are given; the last part of a name is the kind of grammar."""
    make = {
        "schema": Grammar.json_schema,
        "json": Grammar.json_schema,
        "regex": Grammar.regex,
        "choice": Grammar.choice,
        "grammar": Grammar.lark,
    }
    return [
        (path, _make(path, make[path.replace("_", ".").rpartition(".")[2]], value))
        for path, value in fields.items()
        if value is not None
    ]


def _make(path: str, make: Callable[[Any], Grammar], value: Any) -> Grammar:
    """The grammar of the field at `path`; a value that cannot be serialised is refused by that name."""
    try:
        return make(value)
    except InvalidRequest as error:
        raise bad_request(str(error), param=path) from error
