"""From a `Grammar` to the grammar library's own text, with everything checked that is cheap."""

from typing import TYPE_CHECKING, Any, get_args

import orjson

from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar, GrammarKind
from engine.grammar.limits import MAX_CHOICES, MAX_JSON_DEPTH, MAX_SOURCE_CHARS

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

_JSON_STYLE: "JsonCompileOptions" = {
    # One space, or a line break and an indentation: a small model that may write any whitespace
    # often writes nothing else.
    "whitespace_pattern": r"(\x20|\x0A\x20{0,20})",
}

_MAX_REASON = 300

_NAMES = {
    "json_object": "The JSON object",
    "json_schema": "The JSON schema",
    "regex": "The regular expression",
    "choice": "The list of choices",
    "lark": "The Lark grammar",
}


def refusal(grammar: Grammar, reason: str) -> InvalidRequest:
    """A grammar's refusal in one sentence."""
    end = "" if reason.endswith(".") else "."
    return InvalidRequest(f"{_NAMES[grammar.kind]} cannot be used: {reason}{end}", param="grammar")


def check_shape(grammar: Grammar) -> None:
    """Refuse what is no grammar or too large to be looked at. Costs a pass over the source.

    Raises:
        InvalidRequest: in one sentence.
    """
    if not isinstance(grammar, Grammar) or grammar.kind not in get_args(GrammarKind):
        raise InvalidRequest(f"No grammar is written {grammar!r:.60}.", param="grammar")
    source = grammar.source
    if len(source) > MAX_SOURCE_CHARS:
        raise refusal(
            grammar,
            f"it has {len(source):,} characters, and {MAX_SOURCE_CHARS:,} is the most",
        )
    if grammar.kind == "json_schema":
        _schema(grammar)
    elif grammar.kind == "choice":
        _choices(grammar)
    elif grammar.kind == "json_object":
        if source:
            raise refusal(grammar, "it takes no source")
    elif not source.strip():
        raise refusal(grammar, "it is empty")


def library_text(grammar: Grammar) -> str:
    """The grammar as llguidance takes it; `check_shape` has passed.

    Raises:
        InvalidRequest: in one sentence.
    """
    from llguidance import LLMatcher, regex_to_lark

    try:
        if grammar.kind == "json_object":
            return LLMatcher.grammar_from_json_schema('{"type":"object"}', _JSON_STYLE)
        if grammar.kind == "json_schema":
            schema = _schema(grammar)
            # `true` and `false` are schemas, but the library wants an object.
            text = orjson.dumps({} if schema is True else schema).decode()
            return LLMatcher.grammar_from_json_schema(text, _JSON_STYLE)
        if grammar.kind == "regex":
            # In ASCII digits only: \d would allow those of every script.
            body = regex_to_lark(grammar.source, use_ascii="d")
            return LLMatcher.grammar_from_lark(f"start: /{body}/")
        if grammar.kind == "choice":
            options = " | ".join(orjson.dumps(choice).decode() for choice in _choices(grammar))
            # A terminal: as a rule, each text would be an item of the parser.
            return LLMatcher.grammar_from_lark(f"start: CHOICE\nCHOICE: {options}")
        return LLMatcher.grammar_from_lark(grammar.source)
    except ValueError as error:
        raise refusal(grammar, one_sentence(str(error))) from error


def one_sentence(message: str) -> str:
    """The part of the library's message that is for people, on one line."""
    lines = [line.strip() for line in message.replace("<non-verbose/>", "").splitlines()]
    parsing = [line for line in lines if line.startswith("error: ")]  # after a picture of where
    text = parsing[0].removeprefix("error: ") if parsing else " ".join(filter(None, lines))
    return text if len(text) <= _MAX_REASON else text[: _MAX_REASON - 1] + "…"


def _schema(grammar: Grammar) -> dict[str, Any] | bool:
    schema = _parsed(grammar)
    if schema is False:
        raise refusal(grammar, "no JSON satisfies `false`")
    if schema is not True and not isinstance(schema, dict):
        raise refusal(grammar, "it must be an object")
    if isinstance(schema, dict):
        _check_depth(grammar, schema)
    return schema


def _choices(grammar: Grammar) -> list[str]:
    choices = _parsed(grammar)
    if not isinstance(choices, list) or not choices:
        raise refusal(grammar, "it must hold at least one text")
    if len(choices) > MAX_CHOICES:
        raise refusal(grammar, f"it holds {len(choices):,} texts, and {MAX_CHOICES:,} is the most")
    if not all(isinstance(choice, str) and choice for choice in choices):
        raise refusal(grammar, "every choice must be a text that is not empty")
    return choices


def _parsed(grammar: Grammar) -> Any:
    try:
        return orjson.loads(grammar.source)
    except orjson.JSONDecodeError as error:
        raise refusal(grammar, f"it is no JSON ({error})") from error


def _check_depth(grammar: Grammar, schema: Any) -> None:
    """Refuse nesting that a recursive reader could not follow; no recursion of our own."""
    layer, depth = [schema], 0
    while layer:
        if depth > MAX_JSON_DEPTH:
            raise refusal(grammar, f"it is nested more than {MAX_JSON_DEPTH} deep")
        inner = [value for node in layer for value in _members(node)]
        layer = [value for value in inner if isinstance(value, (dict, list))]
        depth += 1


def _members(node: Any) -> Any:
    return node.values() if isinstance(node, dict) else node
