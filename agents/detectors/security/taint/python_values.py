"""`PythonEvaluator`: what names, attributes and calls of Python programs mean."""

import ast
from typing import Protocol

from agents.detectors.python_names import ImportedNames
from agents.detectors.security.taint.data_flow import data_flow
from agents.detectors.security.taint.evaluate import Evaluator, environment_key
from agents.detectors.security.taint.rules import python_sinks
from agents.detectors.security.taint.sources import source_of_call, source_of_name
from agents.detectors.security.taint.value import (
    CONSTANT,
    HOLE,
    SinkKind,
    Trust,
    Value,
    concat,
    join,
    opaque,
)

_TEXT_CALLS = frozenset("str bytes format textwrap.dedent typing.cast list tuple sorted".split())  # noqa: SIM905
"""Calls whose result is still the text that was put together."""
_TEXT_METHODS = frozenset("strip lower upper replace encode rstrip lstrip expandtabs".split())  # noqa: SIM905
_CONSTANT_METHODS = frozenset("items keys values copy split encode".split())  # noqa: SIM905
"""Methods whose result is constant if their receiver is."""


class CallHandler(Protocol):
    """What an evaluator asks about calls."""

    def called(
        self,
        call: ast.Call,
        name: str,
        receiver: Value | None,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> Value | None:
        """Check the sinks of a call, and its result if the function is known."""
        ...

    def attribute(self, owner: Value, name: str) -> Value | None:
        """The value of an attribute of an object whose class is known."""
        ...

    def global_value(self, name: str) -> Value | None:
        """The value of a dotted name of another module, or None if it is unknown."""
        ...


class PythonEvaluator(Evaluator):
    """Values of Python's expressions; assigns through mutating methods, too."""

    def __init__(self, names: ImportedNames, handler: CallHandler) -> None:
        super().__init__()
        self._names = names
        self._handler = handler
        self._flow = data_flow().python
        self._sinks = python_sinks()

    def name_of(self, node: ast.expr) -> str:
        """The dotted name, local variables shadowing imports."""
        return self._names.resolve(node)

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.environment:
            return self.environment[node.id]
        name = self._names.resolve(node)
        return self._dotted(name, node) or Value(opaque(node.id, node.lineno).origins, type=name)

    def _dotted(self, name: str, node: ast.expr) -> Value | None:
        source = source_of_name(name, node)
        if source is not None:
            return source
        known = self._handler.global_value(name)
        if known is not None:
            return known
        last = name.rpartition(".")[2]
        if last.isupper() and not isinstance(node, ast.Call):
            return CONSTANT  # named as a constant somewhere else
        return None

    def _attribute(self, node: ast.Attribute) -> Value:
        key = environment_key(node)
        if key and key in self.environment:
            return self.environment[key]
        root = key.partition(".")[0]
        if not root or root not in self.environment or root in ("self", "cls", "request", "req"):
            found = self._dotted(self._names.resolve(node), node)
            if found is not None:
                return found
        elif (source := source_of_name(key, node)) is not None:
            return source
        owner = self(node.value)
        known = self._handler.attribute(owner, node.attr)
        if known is not None:
            return known
        if root in ("self", "cls") or owner.is_constant:
            return CONSTANT if node.attr.isupper() else opaque(key or node.attr, node.lineno)
        if owner.trust is Trust.OPAQUE:
            return Value(owner.origins, type=self._names.resolve(node))
        return owner.part(f".{node.attr}")

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self(node.value)
        index = node.slice
        if isinstance(index, ast.Slice):
            for bound in (index.lower, index.upper, index.step):
                self(bound)
            return Value(owner.origins, owner.clean, owner.built, owner.text)
        self(index)
        if isinstance(index, ast.Constant):
            if (
                owner.elements
                and isinstance(index.value, int)
                and -len(owner.elements) <= index.value
            ):
                return (
                    owner.elements[index.value] if index.value < len(owner.elements) else CONSTANT
                )
            return owner.part(f"[{index.value!r}]")
        return owner.part()

    def _call(self, node: ast.Call) -> Value:
        receiver = self(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if isinstance(node.func, ast.Call):  # `getattr(module, name)()`
            self(node.func)
        arguments = [self(one) for one in node.args]
        keywords = {one.arg or "**": self(one.value) for one in node.keywords}
        name = self._names.resolve(node.func)
        if isinstance(node.func, ast.Name) and node.func.id in self.environment:
            alias = self.environment[node.func.id].type
            name = alias if alias and not alias.endswith(")") else name
        result = self._handler.called(node, name, receiver, arguments, keywords)
        if result is not None:
            return result
        source = source_of_call(name, node)
        if source is not None:
            return _typed_by_argument(node, source, self._names)
        return self._unknown_call(node, name, receiver, arguments, keywords)

    def _unknown_call(
        self,
        node: ast.Call,
        name: str,
        receiver: Value | None,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> Value:
        """The result of a call of a function that is not part of the program."""
        given = [*arguments, *keywords.values()]
        last = name.rpartition(".")[2]
        if isinstance(node.func, ast.Attribute):
            last = node.func.attr
        if name in self._sinks.cleaning:
            return join([one.part() for one in given]).cleaned(self._sinks.cleaning[name])
        if receiver is not None:
            result = self._method(node, last, receiver, arguments, keywords)
            if result is not None and name not in self._flow.passing:
                return result
        if self._flow.cleaning_name.search(last):
            return join([one.part() for one in given]).cleaned()
        if name in self._flow.passing:
            merged = join(given) if len(given) == 1 else join([one.part() for one in given])
            keep = name in _TEXT_CALLS
            return Value(
                merged.origins,
                merged.clean,
                merged.built and keep,
                merged.text if keep else None,
                type=f"{name}()" if name.startswith("pathlib.") else "",
            )
        return Value(
            opaque(f"{name or last}()", node.lineno).origins, type=f"{name}()" if name else ""
        )

    def _method(
        self,
        node: ast.Call,
        method: str,
        receiver: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> Value | None:
        if method == "format" and (receiver.text is not None or receiver.built):
            return concat([receiver, *arguments, *keywords.values()], text=receiver.text)
        if method == "join" and len(arguments) == 1 and receiver.text is not None:
            items = arguments[0]
            parts = items.elements if items.elements is not None else (items,)
            return concat(
                [receiver, *parts], text=receiver.text.join(one.text or HOLE for one in parts)
            )
        if method == "replace" and len(arguments) == 2 and receiver.origins:
            removed = node.args[0]
            if isinstance(removed, ast.Constant) and removed.value in ("\n", "\r"):
                return receiver.cleaned([SinkKind.LOG])
        if method in self._sinks.cleaning_methods:
            kinds = self._sinks.cleaning_methods[method]
            return join([receiver, *arguments]).part().cleaned(kinds)
        if method in self._flow.mutating_methods:
            self._mutate(node, receiver, [*arguments, *keywords.values()])
            return CONSTANT if method != "setdefault" else receiver.part()
        if method in ("get", "pop", "getlist", "setdefault"):
            key = (
                f"[{node.args[0].value!r}]"
                if node.args and isinstance(node.args[0], ast.Constant)
                else ""
            )
            if receiver.trust >= Trust.LOCAL or receiver.is_constant:
                default = arguments[1:]
                return _typed_by_argument(node, join([receiver.part(key), *default]), self._names)
        if method in self._flow.passing_methods and not receiver.is_constant:
            kept = method in _TEXT_METHODS
            merged = join(
                [receiver, *(arguments if method in ("replace", "joinpath", "with_name") else [])]
            )
            return Value(
                merged.origins,
                merged.clean,
                receiver.built and kept,
                receiver.text if kept else None,
                type=receiver.type
                if method in ("joinpath", "resolve", "absolute", "expanduser")
                else "",
            )
        if (
            receiver.text is not None
            and receiver.is_constant
            and method in self._flow.passing_methods
        ):
            return join([receiver, *arguments])
        return CONSTANT if receiver.is_constant and method in _CONSTANT_METHODS else None

    def _mutate(self, node: ast.Call, receiver: Value, given: list[Value]) -> None:
        if not isinstance(node.func, ast.Attribute):
            return
        name = environment_key(node.func.value)
        if name:
            before = receiver.elements
            elements = None if before is None or node.func.attr != "append" else (*before, *given)
            merged = join([receiver, *given])
            self.environment[name] = Value(
                merged.origins,
                merged.clean,
                receiver.built or any(one.built for one in given),
                elements=None if elements is None or len(elements) > 20 else elements,
                text=merged.text,
            )


PythonEvaluator.forms = {
    **Evaluator.forms,
    ast.Name: PythonEvaluator._name,
    ast.Attribute: PythonEvaluator._attribute,
    ast.Subscript: PythonEvaluator._subscript,
    ast.Call: PythonEvaluator._call,
}


def _typed_by_argument(call: ast.Call, value: Value, names: ImportedNames) -> Value:
    """`request.args.get("n", type=int)` is a number."""
    for keyword in call.keywords:
        if keyword.arg == "type" and names.resolve(keyword.value) in (
            "int",
            "float",
            "bool",
            "uuid.UUID",
        ):
            return value.cleaned()
    return value
