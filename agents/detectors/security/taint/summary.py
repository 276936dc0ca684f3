"""What is known about a function: what it returns and which of its parameters reach sinks."""

import ast
from dataclasses import dataclass, field, replace

from agents.detectors.audit.python_module import PythonModule
from agents.detectors.security.taint.value import CONSTANT, Origin, SinkKind, Trust, Value


@dataclass(frozen=True, slots=True)
class Hit:
    """Data at a sink.

    Attributes:
        kind: kind of the sink.
        path: file of the sink.
        line: first line of the dangerous call.
        end_line: its last line.
        built: whether the string was put together in the function that holds the sink.
        call: what is called.
        origins: where the data comes from, in terms of the function being walked.
        function: the function's qualified name.
        raw: least trust at which the value is reported if it is passed as it is; None for never.
    """

    kind: SinkKind
    path: str
    line: int
    end_line: int
    built: bool
    call: str
    origins: frozenset[Origin]
    function: str
    raw: Trust | None

    @property
    def trust(self) -> Trust:
        """The least trustworthy origin's."""
        return max((origin.trust for origin in self.origins), default=Trust.CONSTANT)

    def with_origins(self, origins: frozenset[Origin], function: str) -> "Hit":
        """The same sink, reached with other data."""
        return replace(self, origins=origins, function=function)


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of walking a function.

    Attributes:
        returns: its result; origins of trust `PARAMETER` are named after its parameters.
        hits: what reaches sinks in it or in what it calls, with at least one parameter among the origins.
    """

    returns: Value = CONSTANT
    hits: frozenset[Hit] = frozenset()


@dataclass(slots=True)
class Function:
    """A function of the program.

    Attributes:
        name: qualified name, such as `app.db.Store.find`.
        module: the module that holds it.
        node: its syntax tree.
        owner: qualified name of its class, or empty.
        summary: of the last round, or None before the first.
        arguments: the worst trust passed for each parameter by the calls seen, by name.
        calls: the number of calls seen.
        callees: qualified names of the program's functions that it calls, of the last round.
    """

    name: str
    module: PythonModule
    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: str = ""
    summary: Summary | None = None
    arguments: dict[str, Trust] = field(default_factory=dict)
    calls: int = 0
    callees: frozenset[str] = frozenset()

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters that can be given by position, `self` left out."""
        arguments = self.node.args
        every = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        return every[1:] if self.owner and every[:1] in (["self"], ["cls"]) else every

    @property
    def is_private(self) -> bool:
        """Whether only this module is meant to call it."""
        return self.node.name.startswith("_")
