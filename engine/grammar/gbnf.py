"""GBNF, llama.cpp's format of grammars, as a grammar in Lark."""

from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar
from engine.grammar.limits import MAX_SOURCE_CHARS


def gbnf_grammar(text: str) -> Grammar:
    """The grammar whose `root` rule a GBNF text defines.

    Raises:
        InvalidRequest: it is not valid GBNF, or too long.
    """
    from llguidance.gbnf_to_lark import gbnf_to_lark

    if len(text) > MAX_SOURCE_CHARS:
        raise InvalidRequest(
            f"The grammar has {len(text):,} characters; the maximum is {MAX_SOURCE_CHARS:,}.",
            param="grammar",
        )
    try:
        return Grammar.lark(gbnf_to_lark(text))
    except RecursionError as error:
        raise InvalidRequest("The grammar is nested too deep.", param="grammar") from error
    except Exception as error:  # the library raises plain Exception
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidRequest(
            f"The grammar is not valid GBNF ({reason[:200].rstrip('.')}).", param="grammar"
        ) from error
