"""Which files of a folder belong together by their names, where a task names none.

`summary.md` beside `source.md` is a summary of it; `answer.md` cites the files of `sources/`; `app.fr.json` translates
`app.en.json`; `record.json` follows `record.schema.json`; `draft.md` is checked with `checklist.md`.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Literal

from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

Kind = Literal["text", "values", "answer", "translation", "schema", "checklist"]
Pair = tuple[list[SourceFile], list[SourceFile]]
"""Files to check, and those to check them against."""

_PROSE = ("markdown", "text", "rst")
_DATA = ("json", "yaml", "toml")
_SOURCES = frozenset([
    "source", "original", "originals", "input", "document", "transcript", "minutes", "facts", "fact",
    "reference", "letter", "contract", "invoice", "notes", "protocol", "interview", "article", "paper", "text",
    "raw", "background", "brief", "briefing",
])  # fmt: skip
_TEXTS = frozenset([
    "summary", "summaries", "abstract", "tldr", "digest", "synopsis", "narration", "narrative", "story",
    "output", "result", "press", "release", "rewrite", "retelling", "recap", "excerpt",
])  # fmt: skip
_VALUES = frozenset(
    ["extracted", "extraction", "fields", "values", "output", "result", "parsed", "entities"]
)
_ANSWERS = frozenset(["answer", "answers", "response", "research", "findings", "report", "essay"])
_DRAFTS = frozenset([
    "draft", "text", "document", "output", "article", "post", "announcement", "notes", "release", "report",
])  # fmt: skip
_LANGUAGE = re.compile(r"^[a-z]{2}(?:[-_][A-Za-z]{2,4})?$")
_MAX_PAIRS = 200


def pairs_by_name(workspace: Workspace, kind: Kind) -> list[Pair]:
    """The pairs of one kind in all folders; empty where no names fit."""
    folders: dict[str, list[SourceFile]] = {}
    for file in workspace:
        folders.setdefault(file.path.rpartition("/")[0], []).append(file)
    found: list[Pair] = []
    for folder, files in folders.items():
        if kind == "translation":
            found += _translations(files)
        elif kind == "schema":
            found += _schemas(files)
        elif kind == "checklist":
            found += _checklists(files)
        else:
            below = folders.get(f"{folder}/sources" if folder else "sources", [])
            found += _against_sources(files, below, kind)
    if kind == "translation":
        found += _language_folders(folders)
    return found[:_MAX_PAIRS]


def _words(file: SourceFile) -> list[str]:
    name = PurePosixPath(file.path).name
    return [word for word in re.split(r"[^a-z]+", name.lower().partition(".")[0]) if word]


def _named(file: SourceFile, wanted: frozenset[str]) -> bool:
    words = _words(file)
    return bool(words) and (words[0] in wanted or words[-1] in wanted)


def _language(file: SourceFile) -> str:
    """The language code in `app.fr.json`; empty if there is none."""
    parts = PurePosixPath(file.path).name.split(".")
    return parts[-2] if len(parts) > 2 and _LANGUAGE.match(parts[-2]) else ""


def _against_sources(
    files: list[SourceFile], below: list[SourceFile], kind: Kind
) -> Iterator[Pair]:
    named = {"text": _TEXTS, "values": _VALUES, "answer": _ANSWERS}[kind]
    languages = _DATA if kind == "values" else _PROSE
    output = [
        file
        for file in files
        if file.language in languages and _named(file, named) and not _language(file)
    ]
    sources = [
        file
        for file in [*files, *below]
        if (file in below or _named(file, _SOURCES)) and file not in output and not _language(file)
        and file.language in (*_PROSE, *(() if kind == "values" else _DATA))
    ]  # fmt: skip
    if output and sources:
        yield output, sources


def _translations(files: list[SourceFile]) -> Iterator[Pair]:
    """`app.en.json` with `app.fr.json`; `source.en.md` with `target.de.md`."""
    coded = [(file, _language(file)) for file in files if _language(file)]
    for source, code in coded:
        if not code.startswith("en"):
            continue
        for target, other in coded:
            if other.startswith("en") or target.language != source.language:
                continue
            first, second = _words(source)[:1], _words(target)[:1]
            if first == second or (first == ["source"] and second in (["target"], ["translation"])):
                yield [target], [source]


def _language_folders(folders: dict[str, list[SourceFile]]) -> Iterator[Pair]:
    """`locales/en/app.json` with `locales/de/app.json`, and `locales/en.json` with `locales/de.json`."""
    for folder, files in folders.items():
        parent, _, own = folder.rpartition("/")
        if own == "en":
            for other, targets in folders.items():
                if (
                    other != folder
                    and other.rpartition("/")[0] == parent
                    and _LANGUAGE.match(other.rpartition("/")[2])
                ):
                    by_name = {PurePosixPath(one.path).name: one for one in targets}
                    for source in files:
                        target = by_name.get(PurePosixPath(source.path).name)
                        if target is not None:
                            yield [target], [source]
        if own in ("locales", "i18n", "lang", "translations", "locale"):
            plain = {PurePosixPath(one.path).stem: one for one in files if one.language in _DATA}
            if "en" in plain:
                yield from (
                    ([one], [plain["en"]])
                    for stem, one in plain.items()
                    if stem != "en" and _LANGUAGE.match(stem)
                )


def _schemas(files: list[SourceFile]) -> Iterator[Pair]:
    """`record.schema.json` with `record.json`, or with the only data file beside `schema.json`."""
    data = [file for file in files if file.language in ("json", "yaml")]
    for schema in data:
        name = PurePosixPath(schema.path).name
        if re.search(r"[.-]schema\.(json|ya?ml)$", name):
            stem = re.sub(r"[.-]schema\.(json|ya?ml)$", "", name)
            same = [
                one for one in data if one is not schema and PurePosixPath(one.path).stem == stem
            ]
            if same:
                yield same, [schema]
        elif re.fullmatch(r"schema\.(json|ya?ml)", name):
            others = [one for one in data if one is not schema]
            if len(others) == 1:
                yield others, [schema]


def _checklists(files: list[SourceFile]) -> Iterator[Pair]:
    lists = [
        file
        for file in files
        if file.language in _PROSE and _named(file, frozenset(["checklist", "requirements"]))
    ]
    drafts = [
        file
        for file in files
        if file.language in _PROSE and file not in lists and _named(file, _DRAFTS)
    ]
    if lists and drafts:
        yield drafts, lists
