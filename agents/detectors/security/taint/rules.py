"""The rules of source-to-sink analysis: the files `rules/*.yaml` of this detector's folder, one for each kind of sink."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from agents.api.data_file import Entry
from agents.detectors.rule_file import JAVASCRIPT, RuleEntry, RuleFile
from agents.detectors.security.taint.data_flow import data_flow
from agents.detectors.security.taint.value import SinkKind, Trust

_TrustName = Literal["never", "opaque", "parameter", "local", "user"]


class SinkEntry(Entry):
    """Arguments of calls of Python programs that must not be made of outsiders' data.

    Attributes:
        names: dotted names of what is called, or names of methods whatever the receiver is.
        arguments: positions and keywords concerned.
        raw: least trust of a value passed as it is that is reported.
        built: least trust of a string put together that is reported.
        looks: pattern that the constant text must match where trust is below `USER`.
        needs: a condition on other arguments (`sink_check`).
    """

    names: tuple[str, ...]
    arguments: tuple[int | str, ...] = (0,)
    raw: _TrustName = "user"
    built: _TrustName = "user"
    looks: str = ""
    needs: Literal[
        "", "shell", "no-shell", "unsafe-yaml", "unsafe-torch", "allow-pickle", "xml-entities", "document"
    ] = ""  # fmt: skip


class ReceiverEntry(SinkEntry):
    """Methods that are sinks on some receivers only.

    Attributes:
        receiver: pattern of such a receiver's dotted name.
        types: dotted names of such a receiver's class.
    """

    receiver: re.Pattern[str]
    types: frozenset[str] = frozenset()


class PythonEntry(Entry):
    """The sinks of one kind in Python.

    Attributes:
        calls: functions and classes.
        methods: by name, whatever the receiver is; the constant text decides whether it is one.
        receivers: by name and receiver.
        file_methods: methods of a `pathlib.Path` whose receiver is the sink.
        database_names: receivers whose methods take statements.
    """

    calls: tuple[SinkEntry, ...] = ()
    methods: tuple[SinkEntry, ...] = ()
    receivers: tuple[ReceiverEntry, ...] = ()
    file_methods: frozenset[str] = frozenset()
    database_names: re.Pattern[str] | None = None


class TreeSinkEntry(Entry):
    """Arguments of a call in another language.

    Attributes:
        language: where it applies; `javascript` stands for TypeScript, too.
        call: pattern of the dotted name of what is called.
        report: `user` for data of clients only, `built` for strings put together, `varying` for all that is not
            constant, `always` whatever is passed.
        arguments: positions concerned.
        looks: pattern that the constant text of the argument must match; empty matches all.
        needs: pattern that the text of the whole call must match; empty matches all.
        in_file: pattern that the file must match somewhere; empty matches all.
    """

    language: Literal["javascript", "go", "rust", "java"]
    call: re.Pattern[str]
    report: Literal["user", "built", "varying", "always"]
    arguments: tuple[int, ...] | Literal["all"] = (0,)
    looks: str = ""
    needs: str = ""
    in_file: str = ""


class TaintRule(RuleEntry):
    """One kind of sink.

    Attributes:
        advice: what to do instead, as one sentence.
        python: sinks of Python.
        others: sinks of the languages that tree-sitter parses.
        checks: patterns of code that checks such a value, in those languages; `listed` is a look-up in a list.
        sanitizers: functions of Python whose result is harmless for this kind.
        sanitizer_methods: methods of which that holds.
    """

    advice: str
    python: PythonEntry = PythonEntry()
    others: tuple[TreeSinkEntry, ...] = ()
    checks: tuple[str, ...] = ()
    sanitizers: tuple[str, ...] = ()
    sanitizer_methods: tuple[str, ...] = ()


_SECURITY = str(Path(__file__).parent)
RULES = RuleFile(_SECURITY, *(kind.replace("-", "_") for kind in SinkKind), entry=TaintRule)


def advice(kind: SinkKind) -> str:
    """What to do instead, as one sentence."""
    return RULES.entries[kind].advice


@dataclass(frozen=True, slots=True)
class Sink:
    """A sink of Python: see `SinkEntry`. None in place of a trust never reports such a value."""

    kind: SinkKind
    positions: tuple[int, ...] = (0,)
    keywords: tuple[str, ...] = ()
    raw: Trust | None = Trust.USER
    built: Trust | None = Trust.USER
    looks: str = ""
    needs: str = ""


@dataclass(frozen=True, slots=True)
class PythonSinks:
    """The sinks and sanitizers of all kinds by name."""

    calls: Mapping[str, tuple[Sink, ...]]
    methods: Mapping[str, tuple[Sink, ...]]
    receivers: tuple[tuple[ReceiverEntry, Sink], ...]
    file_methods: frozenset[str]
    database_names: re.Pattern[str]
    cleaning: Mapping[str, frozenset[SinkKind]]
    cleaning_methods: Mapping[str, frozenset[SinkKind]]


@cache
def python_sinks() -> PythonSinks:
    """The tables for Python."""
    calls: dict[str, tuple[Sink, ...]] = {}
    methods: dict[str, tuple[Sink, ...]] = {}
    receivers: list[tuple[ReceiverEntry, Sink]] = []
    every, flow = frozenset(SinkKind), data_flow().python
    cleaning = dict.fromkeys(flow.cleaning, every)
    cleaning_methods = dict.fromkeys(flow.cleaning_methods, every)
    for kind in SinkKind:
        rule = RULES.entries[kind]
        for table, entries in ((calls, rule.python.calls), (methods, rule.python.methods)):
            for entry in entries:
                sink = _sink(kind, entry)
                for name in entry.names:
                    table[name] = (*table.get(name, ()), sink)
        receivers += [(one, _sink(kind, one)) for one in rule.python.receivers]
        for known, names in (
            (cleaning, rule.sanitizers),
            (cleaning_methods, rule.sanitizer_methods),
        ):
            for name in names:
                known[name] = known.get(name, frozenset()) | {kind}
    database_names = RULES.entries[SinkKind.SQL].python.database_names
    if database_names is None:
        raise LookupError("sql_injection.yaml names no databases")
    return PythonSinks(
        calls,
        methods,
        tuple(receivers),
        RULES.entries[SinkKind.PATH].python.file_methods,
        database_names,
        cleaning,
        cleaning_methods,
    )


def _sink(kind: SinkKind, entry: SinkEntry) -> Sink:
    raw, built = (
        None if name == "never" else Trust[name.upper()] for name in (entry.raw, entry.built)
    )
    return Sink(kind, *_places(entry.arguments), raw, built, entry.looks, entry.needs)


def _places(arguments: tuple[int | str, ...]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    positions = tuple(one for one in arguments if isinstance(one, int))
    return positions, tuple(one for one in arguments if isinstance(one, str))


@cache
def tree_sinks(language: str) -> tuple[tuple[SinkKind, TreeSinkEntry], ...]:
    """The sinks of another language, with their kinds."""
    name = "javascript" if language in JAVASCRIPT else language
    return tuple(
        (kind, sink)
        for kind in SinkKind
        for sink in RULES.entries[kind].others
        if sink.language == name
    )


@cache
def check_of(kind: SinkKind) -> re.Pattern[str] | None:
    """The pattern of code in other languages that checks a value before such a sink, or None."""
    checks = RULES.entries[kind].checks
    patterns = (data_flow().others.listed.pattern if one == "listed" else one for one in checks)
    return re.compile("|".join(patterns)) if checks else None
