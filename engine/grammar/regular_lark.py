"""The regular expression of a Lark grammar without recursion.

JSON schemas can demand that a string matches a regular expression, but not that it is of a grammar. So the
input of a tool whose grammar is regular, such as that of a patch, can be held to it inside a call's JSON.

Of Lark there are rules, terminals, strings, regular expressions, ranges, groups, `?`, `*`, `+`, `~`,
`%import common.X`, aliases and priorities. Priorities only choose between derivations, so they
change no text. `%ignore` is refused as not regular here: it would stand between all the parts of all rules.

Cost: the length of the expression, which grows with each use of a rule; at most `MAX_CHARS`.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_CHARS = 32_768
MAX_DEPTH = 64
MAX_REPEATS = 1000

COMMON = {
    "CNAME": "[_A-Za-z][_A-Za-z0-9]*",
    "CR": r"\r",
    "DECIMAL": r"(?:[0-9]+\.[0-9]*|\.[0-9]+)",
    "DIGIT": "[0-9]",
    "ESCAPED_STRING": r'"(?:[^"\\\n]|\\.)*"',
    "FLOAT": r"(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
    "HEXDIGIT": "[0-9a-fA-F]",
    "INT": "[0-9]+",
    "LCASE_LETTER": "[a-z]",
    "LETTER": "[A-Za-z]",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "NUMBER": r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    "SIGNED_INT": "[+-]?[0-9]+",
    "SIGNED_NUMBER": r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    "UCASE_LETTER": "[A-Z]",
    "WORD": "[A-Za-z]+",
    "WS": r"[ \t\f\r\n]+",
    "WS_INLINE": r"[ \t]+",
}
"""The terminals of Lark's module `common`."""


class NotRegular(ValueError):
    """The grammar is valid, as far as it was read, but no regular expression can stand for it."""


class _Token(NamedTuple):
    kind: str
    text: str


_TOKENS = re.compile(
    r"""
    (?P<space>(?:[ \t\r\f]|//[^\n]*|\\\n)+)
  | (?P<newline>\n)
  | (?P<string>"(?:[^"\\\n]|\\.)*"i?)
  | (?P<regex>/(?!/)(?:[^/\\\n]|\\.)+/[imslux]*)
  | (?P<name>[?!]*_*[A-Za-z][A-Za-z0-9_]*)
  | (?P<directive>%[a-z]+)
  | (?P<arrow>->)
  | (?P<dots>\.\.)
  | (?P<number>-?[0-9]+)
  | (?P<sign>[:|()\[\]?*+~.,{}])
    """,
    re.VERBOSE,
)
_SPECIAL = re.compile(r"([\\^$.|?*+()\[\]{}/-])")


def lark_regex(grammar: str) -> str:
    """The regular expression of the texts that the rule `start` derives.

    Raises:
        NotRegular: the grammar is recursive, ignores something, or its expression is too long.
        ValueError: it is no grammar; the message says what is wrong.
    """
    return _Expander(_definitions(grammar)).expand("start", depth=0)


def _tokens(grammar: str) -> Iterator[_Token]:
    at = 0
    while at < len(grammar):
        found = _TOKENS.match(grammar, at)
        if found is None or found.lastgroup is None:
            line = grammar.count("\n", 0, at) + 1
            raise ValueError(f"line {line} has {grammar[at]!r} where Lark has no such character")
        if found.lastgroup != "space":
            yield _Token(found.lastgroup, found.group())
        at = found.end()


def _definitions(grammar: str) -> dict[str, list[_Token]]:
    """The right sides of rules and terminals by name."""
    lines: list[list[_Token]] = [[]]
    for token in _tokens(grammar):
        if token.kind == "newline":
            lines.append([])
        else:
            lines[-1].append(token)
    found: dict[str, list[_Token]] = {}
    current: list[_Token] | None = None
    for line in filter(None, lines):
        first = line[0]
        if first.kind == "directive":
            current = None
            _directive(line, found)
        elif first.kind == "name" and _colon(line):
            name = first.text.lstrip("?!")
            if name in found:
                raise ValueError(f"{name!r} is defined twice")
            current = found[name] = line[_colon(line) + 1 :]
        elif current is None:
            raise ValueError(f"{first.text[:40]!r} is outside a rule")
        else:
            current += line  # the rule goes on
    return found


def _colon(line: list[_Token]) -> int:
    """The place of the colon after a name and its priority; 0 if there is none."""
    if len(line) > 1 and line[1].text == ":":
        return 1
    if len(line) > 3 and line[1].text == "." and line[2].kind == "number" and line[3].text == ":":
        return 3
    return 0


def _directive(line: list[_Token], found: dict[str, list[_Token]]) -> None:
    words = [token.text for token in line]
    if words[0] == "%ignore":
        raise NotRegular("what is ignored may stand anywhere")
    rest = words[3 if words[2:3] == ["."] else 2 :]
    if words[:2] != ["%import", "common"] or not rest:
        raise NotRegular(f"{' '.join(words)[:60]!r} is not known here")
    names = rest[1:-1] if rest[0] == "(" else rest[:1]
    alias = rest[2] if len(rest) == 3 and rest[1] == "->" else None
    for name in names:
        if name == ",":
            continue
        if name not in COMMON:
            raise NotRegular(f"the terminal {name!r} is not known here")
        found[alias or name] = [_Token("raw", COMMON[name])]


class _Expander:
    """Expands definitions; each use of a name is expanded anew from the expression that is remembered."""

    def __init__(self, definitions: dict[str, list[_Token]]) -> None:
        self._definitions = definitions
        self._done: dict[str, str] = {}
        self._open: set[str] = set()

    def expand(self, name: str, *, depth: int) -> str:
        """The expression of a rule or a terminal."""
        if name in self._done:
            return self._done[name]
        if name not in self._definitions:
            raise ValueError(f"there is no rule {name!r}")
        if name in self._open or depth > MAX_DEPTH:
            raise NotRegular(f"the rule {name!r} is recursive")
        self._open.add(name)
        parser = _Parser(self._definitions[name], self, depth + 1)
        expression = parser.alternatives()
        if parser.peek() is not None:
            raise ValueError(f"the rule {name!r} has an unexpected {parser.peek()!r}")
        self._open.discard(name)
        if len(expression) > MAX_CHARS:
            raise NotRegular("its expression is too long")
        self._done[name] = expression
        return expression


class _Parser:
    """Reads one right side."""

    def __init__(self, tokens: list[_Token], expander: _Expander, depth: int) -> None:
        self._tokens = tokens
        self._expander = expander
        self._depth = depth
        self._at = 0
        self._groups = 0

    def peek(self) -> str | None:
        """The next token's text."""
        return self._tokens[self._at].text if self._at < len(self._tokens) else None

    def _is_sign(self, text: str) -> bool:
        at = self._at
        return at < len(self._tokens) and self._tokens[at] == _Token("sign", text)

    def _next(self) -> _Token:
        if self._at == len(self._tokens):
            raise ValueError("a rule ends where it should go on")
        self._at += 1
        return self._tokens[self._at - 1]

    def alternatives(self) -> str:
        """Expansions between bars."""
        options = [self._sequence()]
        while self._is_sign("|"):
            self._next()
            options.append(self._sequence())
        return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"

    def _sequence(self) -> str:
        parts: list[str] = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind == "arrow":
                self._next()
                self._next()  # the alias, which changes no text
                break
            if token.kind == "sign" and token.text in "|)]":
                break
            parts.append(self._repeated())
            if sum(map(len, parts)) > MAX_CHARS:
                raise NotRegular("its expression is too long")
        return "".join(parts)

    def _repeated(self) -> str:
        atom = self._atom()
        while self._is_sign("?") or self._is_sign("*") or self._is_sign("+"):
            atom = f"(?:{atom}){self._next().text}"
        if self._is_sign("~"):
            self._next()
            least = most = self._number()
            if self.peek() == "..":
                self._next()
                most = self._number()
            if not 0 <= least <= most <= MAX_REPEATS:
                raise NotRegular("a number of repetitions is too large")
            atom = f"(?:{atom}){{{least},{most}}}"
        return atom

    def _number(self) -> int:
        token = self._next()
        if token.kind != "number":
            raise ValueError(f"a number of repetitions is {token.text!r}")
        return int(token.text[:12])

    def _atom(self) -> str:
        token = self._next()
        if token.kind == "string":
            return self._string(token.text)
        if token.kind == "regex":
            return _inline_flags(token.text)
        if token.kind == "raw":
            return token.text
        if token.kind == "name" and self._is_sign("{"):
            raise NotRegular("templates are not known here")
        if token.kind == "name":
            return f"(?:{self._expander.expand(token.text.lstrip('?!'), depth=self._depth)})"
        if token.text in "([" and token.kind == "sign":
            self._groups += 1
            if self._groups > MAX_DEPTH:
                raise NotRegular("groups are nested too deep")
            inner = self.alternatives()
            self._groups -= 1
            closing = self._next().text
            if closing != (")" if token.text == "(" else "]"):
                raise ValueError(f"a group ends with {closing!r}")
            return f"(?:{inner})" + ("?" if token.text == "[" else "")
        raise ValueError(f"{token.text[:40]!r} begins no part of a rule")

    def _string(self, text: str) -> str:
        if self.peek() == "..":
            self._next()
            end = self._next()
            first, last = _unquoted(text), _unquoted(end.text)
            if end.kind != "string" or len(first) != 1 or len(last) != 1 or first > last:
                raise ValueError(f"{text}..{end.text} is no range of characters")
            return f"[{_quoted(first)}-{_quoted(last)}]"
        plain = _quoted(_unquoted(text))
        return f"(?i:{plain})" if text.endswith("i") else f"(?:{plain})"


def _unquoted(text: str) -> str:
    """The value of a string, whose escapes are those of Python."""
    body = text.removesuffix("i")[1:-1]
    try:
        return re.sub(
            r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", _unescaped, body, flags=re.S
        )
    except (ValueError, OverflowError) as error:
        raise ValueError(f"the string {text[:40]} is not valid") from error


def _unescaped(found: "re.Match[str]") -> str:
    escape = found.group(1)
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(escape, escape)


def _quoted(text: str) -> str:
    """A text as a part of a regular expression."""
    plain = _SPECIAL.sub(r"\\\1", text)
    return plain.replace("\n", r"\n").replace("\t", r"\t").replace("\r", r"\r").replace("\f", r"\f")


def _inline_flags(text: str) -> str:
    """A regular expression between slashes, in a group with its flags."""
    body, _, flags = text[1:].rpartition("/")
    kept = "".join(sorted(set(flags) & set("ims")))
    if "x" in flags:
        raise NotRegular("the flag x is not known here")
    try:
        re.compile(body)
    except (re.error, RecursionError) as error:
        raise ValueError(f"/{body[:60]}/ is not valid: {error}") from error
    return f"(?{kept}:{body})" if kept else f"(?:{body})"
