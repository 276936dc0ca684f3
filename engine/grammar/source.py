"""Validation of a `Grammar`'s source, and its translation to llguidance's grammar format.

A JSON source is parsed once: `parse_source` returns the value that `library_text` takes.
"""

import re
from typing import TYPE_CHECKING, Any, get_args

import orjson

from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar, GrammarKind
from engine.grammar.enforceable import enforceable_schema
from engine.grammar.integer_bounds import bound_integers
from engine.grammar.limits import (
    MAX_CHOICES,
    MAX_JSON_DEPTH,
    MAX_SOURCE_CHARS,
    MAX_TOOLS_CHARS,
)
from engine.grammar.nesting import is_too_deep
from engine.grammar.tool_calls import ToolCalls, read_tool_calls

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

_JSON_STYLE: "JsonCompileOptions" = {
    # One space, or a line break with indentation: without a bound, small models often generate
    # nothing but whitespace.
    "whitespace_pattern": r"(\x20|\x0A\x20{0,20})",
}

_TOKEN_REFERENCE = re.compile(r"<\[[0-9]+\]>")
_MAX_REASON = 300
NO_TEXT = "no text satisfies it"
"""The reason for a grammar of the empty language."""

_NAMES = {
    "json_object": "The JSON object",
    "json_schema": "The JSON schema",
    "regex": "The regular expression",
    "choice": "The list of choices",
    "lark": "The Lark grammar",
    "tool_calls": "The list of tools",
}


def grammar_error(grammar: Grammar, reason: str) -> InvalidRequest:
    """The error for a grammar that cannot be used, as one sentence."""
    end = "" if reason.endswith(".") else "."
    return InvalidRequest(f"{_NAMES[grammar.kind]} cannot be used: {reason}{end}", param="grammar")


def parse_source(grammar: Grammar) -> Any:
    """Validate a grammar without building it. Cost: one pass over the source.

    Returns:
        The parsed JSON of `json_schema` (a dict or True), `choice` (a list of strings) and `tool_calls`
        (`ToolCalls`); None for the other kinds.

    Raises:
        InvalidRequest: not a grammar, larger than the limits, or a source of the wrong form.
    """
    if not isinstance(grammar, Grammar) or grammar.kind not in get_args(GrammarKind):
        raise InvalidRequest(f"Expected a grammar, not {grammar!r:.60}.", param="grammar")
    source = grammar.source
    most = MAX_TOOLS_CHARS if grammar.kind == "tool_calls" else MAX_SOURCE_CHARS
    if len(source) > most:
        raise grammar_error(grammar, f"it has {len(source):,} characters; the maximum is {most:,}")
    if grammar.kind == "tool_calls":
        return _tool_calls(grammar)
    if grammar.kind == "json_schema":
        return _schema(grammar)
    if grammar.kind == "choice":
        return _choices(grammar)
    if grammar.kind == "json_object":
        if source:
            raise grammar_error(grammar, "it takes no source")
    elif not source.strip():
        raise grammar_error(grammar, "it is empty")
    return None


def library_text(grammar: Grammar, parsed: Any) -> tuple[str, tuple[str, ...]]:
    """A grammar, but none of the kind `tool_calls`, in the library's format; what is not enforced.

    Args:
        grammar: a valid grammar.
        parsed: what `parse_source` returned for it.

    Raises:
        InvalidRequest: llguidance rejects the expression or schema.
    """
    schema, left_out = enforceable_schema(parsed) if grammar.kind == "json_schema" else (None, ())
    if schema is False:
        raise grammar_error(grammar, NO_TEXT)
    return _library_text(grammar, parsed, schema), left_out


def _library_text(grammar: Grammar, parsed: Any, schema: Any) -> str:
    from llguidance import LLMatcher, regex_to_lark

    try:
        if grammar.kind == "json_object":
            return LLMatcher.grammar_from_json_schema('{"type":"object"}', _JSON_STYLE)
        if grammar.kind == "json_schema":
            # `true` is a schema, but the library expects an object.
            text = orjson.dumps({} if schema is True else bound_integers(schema)).decode()
            return LLMatcher.grammar_from_json_schema(text, _JSON_STYLE)
        if grammar.kind == "regex":
            # ASCII digits only: \d would match the digits of every script.
            body = regex_to_lark(grammar.source, use_ascii="d")
            return LLMatcher.grammar_from_lark(f"start: /{body}/")
        if grammar.kind == "choice":
            options = " | ".join(orjson.dumps(choice).decode() for choice in parsed)
            # A terminal: in a rule, each string would be a parser item.
            return LLMatcher.grammar_from_lark(f"start: CHOICE\nCHOICE: {options}")
        return LLMatcher.grammar_from_lark(grammar.source)
    except ValueError as error:
        raise grammar_error(grammar, one_sentence(str(error))) from error


def checked_text(text: str) -> str:
    """A grammar in llguidance's format for the checking process, whose tokenizer has few control tokens.

    References to tokens by their ids are to one that it has.
    """
    return _TOKEN_REFERENCE.sub("<[0]>", text)


def one_sentence(message: str) -> str:
    """The readable part of the library's message, on one line of at most 300 characters."""
    lines = [line.strip() for line in message.replace("<non-verbose/>", "").splitlines()]
    # Parser errors follow an excerpt of the source.
    parsing = [line for line in lines if line.startswith("error: ")]
    text = parsing[0].removeprefix("error: ") if parsing else " ".join(filter(None, lines))
    return text if len(text) <= _MAX_REASON else text[: _MAX_REASON - 1] + "…"


def _schema(grammar: Grammar) -> dict[str, Any] | bool:
    schema = _parsed(grammar)
    if schema is False:
        raise grammar_error(grammar, "no JSON satisfies `false`")
    if schema is not True and not isinstance(schema, dict):
        raise grammar_error(grammar, "it must be an object")
    if isinstance(schema, dict) and is_too_deep(schema):
        raise grammar_error(grammar, f"it is nested more than {MAX_JSON_DEPTH} levels deep")
    return schema


def _tool_calls(grammar: Grammar) -> ToolCalls:
    try:
        return read_tool_calls(grammar.source)
    except ValueError as error:
        raise grammar_error(grammar, str(error)) from error


def _choices(grammar: Grammar) -> list[str]:
    choices = _parsed(grammar)
    if not isinstance(choices, list) or not choices:
        raise grammar_error(grammar, "it must contain at least one string")
    if len(choices) > MAX_CHOICES:
        raise grammar_error(
            grammar, f"it has {len(choices):,} strings; the maximum is {MAX_CHOICES:,}"
        )
    if not all(isinstance(choice, str) and choice for choice in choices):
        raise grammar_error(grammar, "every choice must be a non-empty string")
    return choices


def _parsed(grammar: Grammar) -> Any:
    try:
        return orjson.loads(grammar.source)
    except orjson.JSONDecodeError as error:
        raise grammar_error(grammar, f"it is not valid JSON ({error})") from error
