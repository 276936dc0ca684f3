"""Structured output: from the many spellings of a form to the engine's one `Grammar`."""

import asyncio
from typing import Any

from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request
from app.server.wire.schemas import SamplingFields
from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar

Wanted = tuple[str, Grammar]
"""The field that asks, as a path into the body, and what it asks for."""


GRAMMAR_FIELDS = frozenset(
    {
        "response_format",
        "structured_outputs",
        "guided_json",
        "guided_regex",
        "guided_choice",
        "guided_grammar",
    }
)


def grammar_of(body: SamplingFields) -> Grammar | None:
    """The form a body asks for.

    Raises:
        ApiError: 400 for two at once, or a combination without a meaning.
    """
    wanted = _wanted(body)
    return None if wanted is None else wanted[1]


async def build_grammar(context: ServerContext, body: SamplingFields) -> None:
    """Have the body's grammar built before anything is submitted, so that a bad one is a 400.

    Raises:
        ApiError: 400 naming the field.
        QueueFull, EngineUnavailable: from the engine.
    """
    wanted = _wanted(body)
    if wanted is None:
        return
    param, grammar = wanted
    try:
        build = asyncio.wrap_future(context.engine.build_grammar(grammar))
        build.add_done_callback(_look)
        # Unlike awaiting it, this leaves the build to others when the client leaves.
        await asyncio.wait([build])
        build.result()
    except InvalidRequest as error:
        raise bad_request(str(error), param=param) from error


def _look(build: "asyncio.Future[Any]") -> None:
    """Nobody may be left to see a refusal, which asyncio would complain about."""
    if not build.cancelled():
        build.exception()


def _wanted(body: SamplingFields) -> Wanted | None:
    asked = [*_response_format(body), *_guided(body), *_structured_outputs(body)]
    if len(asked) > 1:
        raise bad_request(
            f"`{asked[0][0]}` and `{asked[1][0]}` both give the answer a form; one is the most.",
            param=asked[1][0],
        )
    return asked[0] if asked else None


def _response_format(body: SamplingFields) -> list[Wanted]:
    form = body.response_format
    if form is None:
        return []
    if (form.type == "json_schema") != (form.json_schema is not None):
        raise bad_request(
            "`response_format.json_schema` belongs to type `json_schema`, and only to it.",
            param="response_format.json_schema",
        )
    if form.json_schema is not None:
        path = "response_format.json_schema.schema"
        return [(path, Grammar.json_schema(form.json_schema.schema_))]
    return [("response_format", Grammar.json_object())] if form.type == "json_object" else []


def _guided(body: SamplingFields) -> list[Wanted]:
    return _spelled(
        {
            "guided_json": body.guided_json,
            "guided_regex": body.guided_regex,
            "guided_choice": body.guided_choice,
            "guided_grammar": body.guided_grammar,
        }
    )


def _structured_outputs(body: SamplingFields) -> list[Wanted]:
    given = body.structured_outputs
    if given is None:
        return []
    asked = _spelled(
        {
            "structured_outputs.json": given.json_,
            "structured_outputs.regex": given.regex,
            "structured_outputs.choice": given.choice,
            "structured_outputs.grammar": given.grammar,
        }
    )
    if given.json_object:
        asked.append(("structured_outputs.json_object", Grammar.json_object()))
    return asked


def _spelled(fields: dict[str, Any]) -> list[Wanted]:
    """The fields that are given; the last part of their names says what they hold."""
    make = {
        "json": Grammar.json_schema,
        "regex": Grammar.regex,
        "choice": Grammar.choice,
        "grammar": Grammar.lark,
    }
    return [
        (path, make[path.replace("_", ".").rpartition(".")[2]](value))
        for path, value in fields.items()
        if value is not None
    ]
