"""Known-item queries to reStructuredText: each has one relevant place in the corpus.

Kinds, the first five by rule from definitions (`.. function::` and the like) and from sections:

* `identifier`: the qualified name, or the name with some of its parameters: what a programmer types.
* `question`: the first sentence of a definition as a question, without the name and markup, in other words
  where `SYNONYMS` has some.
* `heading`: the title of a section that no other section has.
* `gist`: content words of a section's first sentence, without every third and in other words where
  possible.
* `vague`: the sentence behind a question or gist without its rarest words, as by a reader who does not know
  the terms: at most `KNOWN_SHARE` of its content words are left, those in the most documents.
* `written`: questions that a person would ask, written by hand without looking at the page
  (`data/retrieval_questions.jsonl`).

An item's target is the definition or heading with its first paragraph. A chunk is relevant if it shares at
least half of the shorter of the two with the target. The half that an item belongs to follows from the
SHA-256 of its place: parameters may be chosen on *tuning* only.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

Kind = Literal["identifier", "question", "heading", "gist", "vague", "written"]
Half = Literal["tuning", "held_out"]
KINDS: tuple[Kind, ...] = ("identifier", "question", "heading", "gist", "vague", "written")
WRITTEN = Path(__file__).parent / "data" / "retrieval_questions.jsonl"

DEFINITION = re.compile(
    r"^(?P<indent> *)\.\. (?:c:)?"
    r"(?:function|method|class|exception|data|attribute|decorator|classmethod|staticmethod|macro|type)"
    r":: *(?P<signature>.+)$"
)
MODULE = re.compile(r"^\.\. (?:module|currentmodule):: *(?P<name>\S+)", re.M)
UNDERLINE = re.compile(r"^([=\-~^\"'*+#`.:])\1{2,}\s*$")
ROLE = re.compile(r":[\w:+-]+:`(?:[^`<]*<)?[~!]?([^`>]*)>?`")
LINK = re.compile(r"`([^`<]+?) *(?:<[^`>]*>)?`_{0,2}")
SYNONYMS = {
    "argument": "parameter",
    "arguments": "parameters",
    "begin": "start",
    "buffer": "memory area",
    "change": "modify",
    "changes": "modifications",
    "character": "letter",
    "characters": "letters",
    "check": "test",
    "compute": "work out",
    "contains": "holds",
    "convert": "turn",
    "copy": "duplicate",
    "create": "make",
    "default": "standard",
    "delete": "erase",
    "directory": "folder",
    "directories": "folders",
    "disable": "turn off",
    "disabled": "turned off",
    "element": "item",
    "elements": "items",
    "enable": "turn on",
    "enabled": "turned on",
    "error": "failure",
    "execute": "run",
    "function": "routine",
    "invoked": "called",
    "maximum": "largest",
    "minimum": "smallest",
    "number": "count",
    "object": "instance",
    "objects": "instances",
    "obtain": "get",
    "parse": "read",
    "path": "location",
    "print": "show",
    "process": "program",
    "provides": "offers",
    "raised": "thrown",
    "remove": "take away",
    "replace": "substitute",
    "sequence": "list",
    "specified": "given",
    "string": "text",
    "strings": "texts",
    "terminate": "stop",
    "thread": "thread of execution",
    "used": "employed",
    "whether": "if",
    "write": "store",
}
VERBS = {
    **{verb: verb for verb in ("add", "apply", "change", "check", "close", "compare", "compute")},
    **{verb: verb for verb in ("convert", "copy", "create", "decode", "delete", "determine")},
    **{
        verb: verb
        for verb in ("disable", "enable", "encode", "execute", "extract", "find", "flush")
    },
    **{verb: verb for verb in ("format", "generate", "insert", "load", "lock", "make", "open")},
    **{
        verb: verb for verb in ("parse", "print", "read", "register", "remove", "rename", "replace")
    },
    **{verb: verb for verb in ("run", "search", "send", "set", "skip", "split", "start", "stop")},
    **{verb: verb for verb in ("test", "wait", "write")},
    "get": "find out",
    "return": "get",
    "retrieve": "get",
}
"""First verb of a description → the verb of the question."""
STOPWORDS = frozenset(
    """
    a an and are as at be been by can do does for from has have how if in into is it its may more
    not of on or other should so some such than that the their them then there these they this those
    to under up was we were what when where which while who will with you your
    """.split()  # noqa: SIM905 - read as words
)
KNOWN_SHARE, LEAST_VAGUE_WORDS = 0.6, 4
LEAST_WORDS, MOST_WORDS = 7, 24
"""Length of a sentence from which a query is made."""


@dataclass(frozen=True, slots=True)
class KnownItem:
    """A query and the place that answers it.

    Attributes:
        query: what is searched for.
        kind: how it was made.
        file: the document.
        start, end: bytes of the target in the file, half-open.
    """

    query: str
    kind: Kind
    file: str
    start: int
    end: int

    @property
    def half(self) -> Half:
        """The half that the item belongs to."""
        digest = hashlib.sha256(
            f"{Path(self.file).name}:{self.start}:{self.kind}".encode()
        ).digest()
        return "tuning" if digest[0] % 2 else "held_out"

    def found_in(self, file: str, start: int, end: int) -> bool:
        """Whether a span shares at least half of the shorter of itself and the target."""
        shared = min(end, self.end) - max(start, self.start)
        return file == self.file and 2 * shared >= min(end - start, self.end - self.start) > 0


@dataclass(frozen=True, slots=True)
class _Definition:
    """A directive that defines a name, with its first paragraph."""

    name: str
    parameters: tuple[str, ...]
    sentence: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading with the first paragraph below it."""

    title: str
    sentence: str
    start: int
    end: int


def known_items(files: Iterable[Path], most: int) -> list[KnownItem]:
    """At most `most` items of each kind and half, in an order that depends on the texts alone.

    Args:
        files: UTF-8 files with reStructuredText.
        most: limit per kind and half.
    """
    found: list[KnownItem] = []
    texts = {str(file): file.read_text("utf-8", "replace") for file in files}
    counts = Counter(word for text in texts.values() for word in set(_words(text.lower())))
    for file, text in texts.items():
        found += _of_definitions(file, text, counts)
        found += _written(file, text)
        found += _of_sections(file, text, counts)
    # Queries with two targets have no known item.
    times = Counter((item.kind, item.query.lower()) for item in found)
    single = [item for item in found if times[item.kind, item.query.lower()] == 1]
    chosen: list[KnownItem] = []
    taken: Counter[tuple[Kind, Half]] = Counter()
    for item in sorted(single, key=_shuffled):
        if taken[item.kind, item.half] < most:
            taken[item.kind, item.half] += 1
            chosen.append(item)
    return chosen


def _shuffled(item: KnownItem) -> bytes:
    return hashlib.sha256(f"{item.kind}:{item.query}:{item.start}".encode()).digest()


def _of_definitions(file: str, text: str, counts: Counter[str]) -> Iterator[KnownItem]:
    module = found["name"] if (found := MODULE.search(text)) else ""
    for one in definitions(text):
        name = one.name if "." in one.name or not module else f"{module}.{one.name}"
        if len(one.parameters) >= 2 and len(one.sentence) % 2:
            name = " ".join((one.name, *one.parameters[:3]))
        yield KnownItem(name, "identifier", file, one.start, one.end)
        if question := question_of(one.sentence, one.name):
            yield KnownItem(question, "question", file, one.start, one.end)
            if vague := vague_of(question, counts):
                yield KnownItem(vague, "vague", file, one.start, one.end)


def _written(file: str, text: str) -> Iterator[KnownItem]:
    page = "/".join(Path(file).parts[-2:]).removesuffix(".rst.txt")
    if questions := _written_questions().get(page):
        for one in definitions(text):
            if query := questions.get(one.name):
                yield KnownItem(query, "written", file, one.start, one.end)


@cache
def _written_questions() -> dict[str, dict[str, str]]:
    """Page → name of the definition → question."""
    questions: dict[str, dict[str, str]] = {}
    for line in WRITTEN.read_text().splitlines():
        one = json.loads(line)
        questions.setdefault(one["file"], {})[one["name"]] = one["query"]
    return questions


def _of_sections(file: str, text: str, counts: Counter[str]) -> Iterator[KnownItem]:
    for one in sections(text):
        title = plain(one.title)
        if 3 <= len(title.split()) <= 12:
            yield KnownItem(title, "heading", file, one.start, one.end)
        if gist := gist_of(one.sentence):
            yield KnownItem(gist, "gist", file, one.start, one.end)
            if vague := vague_of(reworded(one.sentence.split()), counts):
                yield KnownItem(vague, "vague", file, one.start, one.end)


def definitions(text: str) -> Iterator[_Definition]:
    """The definitions of a file that have a description."""
    lines = text.splitlines(keepends=True)
    starts = _line_starts(lines)
    for at, line in enumerate(lines):
        if not (found := DEFINITION.match(line.rstrip("\n"))):
            continue
        indent = len(found["indent"])
        signature, below = found["signature"], at + 1
        while signature.endswith("\\") and below < len(lines):
            signature = signature[:-1] + lines[below].strip()
            below += 1
        paragraph, end = _paragraph(lines, below, deeper_than=indent)
        sentence = first_sentence(plain(paragraph))
        name = re.split(r"[\s(\[]", signature.removeprefix("async "), maxsplit=1)[0]
        if len(sentence.split()) >= 4 and re.fullmatch(r"[\w.]{4,}", name):
            yield _Definition(name, _parameters(signature), sentence, starts[at], starts[end])


def sections(text: str) -> Iterator[_Section]:
    """The sections of a file that begin with a paragraph of prose."""
    lines = text.splitlines(keepends=True)
    starts = _line_starts(lines)
    for at in range(1, len(lines)):
        title = lines[at - 1].strip()
        if (
            not UNDERLINE.match(lines[at])
            or not re.search(r"\w", title)
            or lines[at - 1][:1] == " "
        ):
            continue
        paragraph, end = _paragraph(lines, at + 1, deeper_than=-1)
        first = paragraph.lstrip()[:1]
        if first and first not in ".-*+:#|=" and not UNDERLINE.match(paragraph.splitlines()[-1]):
            yield _Section(title, first_sentence(plain(paragraph)), starts[at - 1], starts[end])


def plain(text: str) -> str:
    """A text without reStructuredText's inline markup, in one line."""
    text = LINK.sub(r"\1", ROLE.sub(r"\1", text.replace("``", "`")))
    return " ".join(re.sub(r"[*`|]|::$", "", text).split())


def first_sentence(text: str) -> str:
    """The text up to the first full stop that ends a sentence; empty if there is none."""
    found = re.match(r"(.+?[.!?:])(?:\s|$)(?<!e\.g\.\s)(?<!i\.e\.\s)", text)
    return found[1] if found else ""


def question_of(sentence: str, name: str) -> str:
    """The description as a question about how to do it; empty if it does not begin with a known verb."""
    words = re.sub(r"\([^)]*\)", "", sentence).rstrip(".:!? ").split()
    if not LEAST_WORDS <= len(words) <= MOST_WORDS:
        return ""
    first = words[0].lower()
    forms = (first, first.removesuffix("s"), first.removesuffix("es"), re.sub("ies$", "y", first))
    verb = next((VERBS[form] for form in forms if form in VERBS), None)
    last = name.rpartition(".")[2].lower()
    rest = [word for word in words[1:] if last not in word.lower()]
    if not verb or len(rest) < LEAST_WORDS - 2:
        return ""
    if [word.lower() for word in rest[:2]] in (["true", "if"], ["true", "when"]):
        return f"how can I tell if {reworded(rest[2:])}?"
    return f"how do I {verb} {reworded(rest)}?"


def gist_of(sentence: str) -> str:
    """Content words of a sentence, without every third; empty for a sentence too short or too long."""
    content = [word for word in _words(sentence) if word.lower() not in STOPWORDS]
    if not LEAST_WORDS <= len(content) <= MOST_WORDS:
        return ""
    return reworded(word for at, word in enumerate(content) if at % 3 != 2).lower()


def vague_of(sentence: str, counts: Mapping[str, int]) -> str:
    """The sentence without its rarest content words; empty if too few are left.

    Args:
        counts: word in lower case → number of documents that have it.
    """
    words = _words(sentence)
    content = sorted(
        {word.lower() for word in words} - STOPWORDS, key=lambda word: (-counts[word], word)
    )
    known = set(content[: int(KNOWN_SHARE * len(content))])
    left = [word for word in words if word.lower() in known or word.lower() in STOPWORDS]
    return " ".join(left) if len(known) >= LEAST_VAGUE_WORDS else ""


def reworded(words: Iterable[str]) -> str:
    """The words with those of `SYNONYMS` replaced; punctuation at their ends is kept."""

    def other(word: str) -> str:
        bare = word.strip(",.;:\"'")
        return word.replace(bare, SYNONYMS[bare.lower()]) if bare.lower() in SYNONYMS else word

    return " ".join(map(other, words))


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z][\w-]*", text)


def _parameters(signature: str) -> tuple[str, ...]:
    inside = signature.partition("(")[2].rpartition(")")[0]
    names = (re.match(r"\**(\w{3,})", part.strip(" []")) for part in inside.split(","))
    return tuple(found[1] for found in names if found)


def _paragraph(lines: Sequence[str], below: int, *, deeper_than: int) -> tuple[str, int]:
    """The first paragraph from line `below` on that no directive begins, and the line behind it.

    Empty if a line that is not indented deeper comes first.
    """
    at = below
    while at < len(lines):
        line = lines[at]
        indent = len(line) - len(line.lstrip(" "))
        if not line.strip() or re.match(r" *:\w[\w ]*:", line):  # blank, or a field like :noindex:
            at += 1
        elif indent <= deeper_than:
            return "", below
        elif line.lstrip().startswith(".. "):
            at += 1
            while at < len(lines) and (
                not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip(" ")) > indent
            ):
                at += 1
        else:
            end = at
            while end < len(lines) and lines[end].strip():
                end += 1
            return "".join(lines[at:end]), end
    return "", below


def _line_starts(lines: Sequence[str]) -> list[int]:
    """Byte offset of each line, and of the end."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    return starts
