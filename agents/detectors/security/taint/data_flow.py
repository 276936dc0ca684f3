"""`data_flow`: where data of outsiders enters a program and which calls pass it on or clean it (`data_flow.yaml`)."""

import re
from functools import cache
from pathlib import Path

from agents.api.data_file import Entry, read_entries
from agents.detectors.rule_file import RuledExample


class PythonFlow(Entry):
    """How data flows in Python.

    Attributes:
        request_names: dotted names of a request.
        request_parts: attributes and methods of a request that hold what a client sent.
        request_methods: methods that read a request's body.
        remote_methods: methods that receive messages.
        local_calls: calls whose result the person who starts the program supplies.
        local_names: names of which that holds.
        route_methods: decorators that make a function answer requests, if `routers` matches what they belong to.
        commands: decorators that make a function a command.
        numbers: annotations of parameters that cannot hold a text.
        services: annotations of parameters that the framework supplies.
        depends: defaults of such parameters.
        cleaning: calls whose result is harmless everywhere.
        cleaning_methods: methods of which that holds.
        cleaning_name: functions of unknown code whose names say that they clean.
        check_name: predicates and checks of unknown code whose argument is harmless after they succeed.
        passing: calls whose result carries the data of their arguments.
        passing_methods: methods whose result carries the data of their receiver.
        mutating_methods: methods that put their arguments into their receiver.
    """

    request_names: frozenset[str]
    request_parts: frozenset[str]
    request_methods: frozenset[str]
    remote_methods: frozenset[str]
    local_calls: frozenset[str]
    local_names: frozenset[str]
    route_methods: frozenset[str]
    routers: re.Pattern[str]
    commands: re.Pattern[str]
    numbers: frozenset[str]
    services: re.Pattern[str]
    depends: frozenset[str]
    cleaning: tuple[str, ...]
    cleaning_methods: tuple[str, ...]
    cleaning_name: re.Pattern[str]
    check_name: re.Pattern[str]
    passing: frozenset[str]
    passing_methods: frozenset[str]
    mutating_methods: frozenset[str]


class OtherFlow(Entry):
    """How data flows in the languages that tree-sitter parses: patterns of their code.

    Attributes:
        user: expressions that hold data of a client.
        user_parameter: parameters that a web framework fills with what a client sends.
        cleaning: calls whose result is harmless.
        formatters: calls that put strings together.
        placeholders: code that makes the question marks of a prepared statement.
        listed: a look-up in a list of permitted values.
    """

    user: re.Pattern[str]
    user_parameter: re.Pattern[str]
    cleaning: re.Pattern[str]
    formatters: re.Pattern[str]
    placeholders: re.Pattern[str]
    listed: re.Pattern[str]


class DataFlow(Entry):
    """Sources, passing and cleaning by language."""

    python: PythonFlow
    others: OtherFlow
    examples: tuple[RuledExample, ...]


@cache
def data_flow() -> DataFlow:
    """What the file says; read at the first call."""
    (flow,) = read_entries(Path(__file__).with_suffix(".yaml"), DataFlow)
    return flow
