"""`examples_in`: the examples of a docstring or a task, as calls with the value that they should have.

Read are doctests, and lines in which a call of the function is followed by a value:

    f(2) == 3     f(2) ➞ 3     f(2) => 3     f(2) -> 3     f(2) # returns 3     f(2) returns 3     f(2) = 3
    For x = 2 the output should be 3
    Input: 2 / Output: 3     (on one line or two)

An example counts only if it is unambiguous: the call parses, and the value is a literal (or, in a doctest,
any text that would be printed). What cannot be read is left out, never guessed.
"""

import ast
import doctest
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.width.probe_run import Call

MAX_EXAMPLES = 40
_SEPARATOR = re.compile(
    r"""\s*(?:
        (?:\#|//)?\s*(?:==+>|=>|->|-+>|➞|→|⟹|⇒|==+|=|➜|↦)
        | (?:\#|//|,|\.)?\s*(?:should\s+)?(?:returns?|gives|yields|evaluates\s+to|produces|outputs?|is)
            (?:\s+(?:the\s+)?(?:value|result|list|string|number|equal\s+to))?\s*(?::|=)?
        | \s(?=[\[\(\{"'\d-])
    )\s*""",
    re.VERBOSE | re.IGNORECASE,
)
_INPUT = re.compile(
    r"^\W*(?:sample\s+|example\s+)?inputs?\s*(?:\d+)?\s*[:=]\s*(.*)$", re.IGNORECASE
)
_OUTPUT = re.compile(
    r"\b(?:expected\s+|sample\s+)?outputs?\s*(?:\d+)?\s*[:=]\s*(.*)$", re.IGNORECASE
)
_FOR = re.compile(
    r"^\W*(?:for|if|when|given|with)\s+(?P<given>.+?)[,:]?\s+(?:the\s+)?(?:output|result|answer|function)?\s*"
    r"(?:should\s+(?:be|return|give)|must\s+be|is|returns?|=>|->|➞)\s*:?\s*(?P<value>.+)$",
    re.IGNORECASE,
)
_WORDS = {"true": "True", "false": "False", "none": "None", "null": "None"}


@dataclass(frozen=True, slots=True)
class Example:
    """One example.

    Attributes:
        call: the expression, its statements before it, and what it should be, if that is a literal.
        printed: what a doctest prints, if that is no literal; else None.
        raises: name of the exception that it raises, or empty.
        text: as it was written.
    """

    call: Call
    printed: str | None = None
    raises: str = ""
    text: str = ""


def examples_in(text: str, name: str, parameters: Sequence[str] = ()) -> list[Example]:
    """The examples of a text about one function.

    Args:
        text: a docstring, or the words of a task.
        name: the function, as it is called.
        parameters: its parameters, for examples that name them.
    """
    found = list(_doctests(text, name))
    sessions = any(line.lstrip().startswith(">>>") for line in text.splitlines())
    plain = _without_sessions(text) if sessions else text
    found += _lines(plain, name, [one for one in parameters if not one.startswith("*")])
    unique = {(one.call.setup, one.call.expression): one for one in reversed(found)}
    return list(reversed(unique.values()))[:MAX_EXAMPLES]


# Doctests.


def _doctests(text: str, name: str) -> Iterator[Example]:
    """The doctests that lead to a call of the function, each with the statements before it."""
    try:
        parsed = doctest.DocTestParser().get_examples(_spaced(text))
    except ValueError:
        return
    before: list[str] = []
    for one in parsed:
        source = one.source.strip()
        expression = _expression(source)
        skipped = one.options.get(doctest.SKIP, False)
        if expression is None or skipped:
            if _compiles(source) and not skipped:
                before.append(source)
            continue
        setup = "\n".join(before)
        example = _wanted(expression, one, setup)
        if example is not None and name.rpartition(".")[2] in f"{setup}\n{source}":
            yield example
        before.append(source)


def _wanted(expression: str, one: doctest.Example, setup: str) -> Example | None:
    want = one.want.rstrip("\n")
    written = f"{expression} → {want.strip()}"
    if one.exc_msg is not None:
        raises = one.exc_msg.partition(":")[0].strip().rpartition(".")[2]
        return Example(Call(expression, setup), raises=raises, text=f"{expression} raises {raises}")
    side = _comparison(expression)
    if not want.strip():
        # `f(2) == 3` alone in a doctest, as some write it, prints True if it holds.
        return _compared(side, setup) if side else None
    if side and _literal(want) is None and want.strip() not in ("True", "False"):
        return _compared(side, setup)
    value = _literal(want)
    if value is not None and not one.options.get(doctest.ELLIPSIS):
        return Example(Call(expression, setup, expected=value), text=written)
    if one.options.get(doctest.ELLIPSIS) or "..." in want:
        return None
    return Example(Call(expression, setup), printed=want, text=written)


def _compared(sides: tuple[str, str], setup: str) -> Example | None:
    left, right = sides
    return Example(Call(left, setup, expected=right), text=f"{left} → {right}")


def _comparison(expression: str) -> tuple[str, str] | None:
    """Both sides of `f(x) == value`."""
    node = ast.parse(expression, mode="eval").body
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        return ast.unparse(node.left), ast.unparse(node.comparators[0])
    return None


def _spaced(text: str) -> str:
    """The text with a space after each prompt, without which doctest refuses it, in one indentation each."""
    return re.sub(r"^(\s*)(>>>|\.\.\.)(?=[^\s.>])", r"\1\2 ", text, flags=re.MULTILINE)


def _without_sessions(text: str) -> str:
    """The text without the lines of doctests that were understood; those with a value on the line stay."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith(">>>"):
            inside = True
            rest = stripped.removeprefix(">>>").strip()
            if _expression(rest) is None:
                kept.append(rest)
            continue
        if inside and stripped:
            continue
        inside = False
        kept.append(line)
    return "\n".join(kept)


# Lines.


def _lines(text: str, name: str, parameters: Sequence[str]) -> Iterator[Example]:
    lines = text.splitlines()
    called = re.compile(rf"(?<![\w.]){re.escape(name)}\s*\(")
    waiting = ""
    for at, line in enumerate(lines):
        following = "\n".join(lines[at : at + 6])
        match = called.search(line)
        if match is not None and not line.lstrip().startswith(("def ", "class ", "async def ")):
            while match is not None:
                example, used = _call_line(following[match.start() :])
                if example is not None:
                    yield example
                match = called.search(line, match.start() + max(1, used))
            continue
        waiting, example = _named(line, following, waiting, name, parameters)
        if example is not None:
            yield example


def _call_line(text: str) -> tuple[Example | None, int]:
    """The example at the beginning of a text, and how many of its characters were read."""
    end = _balanced(text, text.index("("))
    if end is None:
        return None, 1
    call = text[:end]
    expression = _expression(call)
    if expression is None or not _arguments_are_values(expression):
        return None, end
    match = _SEPARATOR.match(text, end)
    if match is None:
        return None, end
    value, size = _value_at(text[match.end() :])
    if value is None:
        return None, end
    example = Example(Call(expression, expected=value), text=f"{expression} → {value}")
    return example, match.end() + size


def _named(
    line: str, following: str, waiting: str, name: str, parameters: Sequence[str]
) -> tuple[str, Example | None]:
    """An example that names no call: `Input:` and `Output:`, or `For x = 2 the output should be 3`.

    Returns the input that still waits for its output, and the example.
    """
    match = _INPUT.match(line)
    if match:
        given, rest = _split_output(match[1])
        if not rest:
            return given, None
        return "", _assembled(given, rest, name, parameters)
    match = _OUTPUT.search(line)
    if match and waiting:
        rest = following[following.index(match[1]) :] if match[1] else ""
        return "", _assembled(waiting, rest, name, parameters)
    match = _FOR.match(line)
    if match:
        return waiting, _assembled(match["given"], match["value"], name, parameters)
    return waiting, None


def _split_output(text: str) -> tuple[str, str]:
    """`2, Output: 3` at its output."""
    match = _OUTPUT.search(text)
    if match is None:
        return text.strip(), ""
    return text[: match.start()].strip().rstrip(",;|/"), match[1]


def _assembled(given: str, value: str, name: str, parameters: Sequence[str]) -> Example | None:
    """The call with arguments that are written beside it: `2, "a"`, or `x = 2, y = "a"`."""
    expected, _ = _value_at(value)
    if expected is None or not parameters:
        return None
    given = re.sub(r"\s+and\s+", ", ", given.strip().rstrip(".,:;"))
    try:
        node = ast.parse(f"_({given})", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(node, ast.Call) or not _arguments_are_values(ast.unparse(node)):
        return None
    keywords = {one.arg for one in node.keywords}
    if keywords and (node.args or not keywords <= set(parameters)):
        return None
    arguments = ast.unparse(node)[2:-1]
    if not keywords and len(node.args) != len(parameters):
        return None
    expression = f"{name}({arguments})"
    return Example(Call(expression, expected=expected), text=f"{expression} → {expected}")


# Values.


def _value_at(text: str) -> tuple[str | None, int]:
    """The longest literal that a text begins with, as an expression, and its length."""
    text = re.sub(r"^\s*", "", text)
    word = re.match(r"(true|false|none|null)\b", text, re.IGNORECASE)
    if word:
        return _WORDS[word[1].lower()], word.end()
    if text[:1] in ("[", "(", "{"):
        end = _balanced(text, 0)
        return (None, 0) if end is None else (_literal(text[:end]), end)
    string = re.match(r"""(?:[bru]{0,2})("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""", text)
    if string:
        return _literal(string[0]), string.end()
    number = re.match(r"[+-]?(?:\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+)(?![\w(])", text)
    if number:
        rest = text[number.end() :].lstrip(" ")
        if rest[:1] in tuple("+-*/%^<>") and not rest.startswith(("->", "--")):
            return None, 0  # the beginning of a calculation
        return _literal(number[0].rstrip(".")), number.end()
    return None, 0


def _literal(text: str) -> str | None:
    """The text as a literal's expression, or None."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return None if value is Ellipsis else repr(value)


def _expression(source: str) -> str | None:
    """The source if it is one expression, without its comments."""
    try:
        return ast.unparse(ast.parse(source.strip(), mode="eval"))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _compiles(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _arguments_are_values(expression: str) -> bool:
    """Whether a call's arguments are literals: `f(x)` in prose is no example."""
    node = ast.parse(expression, mode="eval").body
    if not isinstance(node, ast.Call):
        return False
    values = [*node.args, *(one.value for one in node.keywords)]
    return all(_is_value(one) for one in values)


def _is_value(node: ast.expr) -> bool:
    return not any(
        isinstance(one, ast.Name | ast.Lambda | ast.Await) and getattr(one, "id", "") != "set"
        for one in ast.walk(node)
    )


def _balanced(text: str, start: int) -> int | None:
    """The end of the bracket that begins at `start`, strings in it skipped; None if it is not closed."""
    depth = 0
    quote = ""
    at = start
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\":
                at += 1
            elif character == quote:
                quote = ""
        elif character in "\"'":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return None
