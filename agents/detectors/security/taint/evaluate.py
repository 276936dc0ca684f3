"""`Evaluator`: the abstract value of a Python expression in an environment."""

import ast
from collections.abc import Callable
from typing import Protocol

from agents.detectors.security.python_names import ImportedNames
from agents.detectors.security.taint.guards import Cleaned, guard_of
from agents.detectors.security.taint.sanitizers import (
    CLEANING,
    CLEANING_METHODS,
    CLEANING_NAME,
    MUTATING_METHODS,
    PASSING,
    PASSING_METHODS,
)
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

Environment = dict[str, Value]
_MAX_DEPTH = 60


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


class Evaluator:
    """Values of expressions; assigns through walrus and mutating methods."""

    def __init__(self, names: ImportedNames, handler: CallHandler) -> None:
        self.environment: Environment = {}
        self._names = names
        self._handler = handler
        self._depth = 0

    def __call__(self, node: ast.expr | None) -> Value:
        """The value of an expression; unknown at absurd depth."""
        if node is None:
            return CONSTANT
        method = self._METHODS.get(type(node))
        if method is None or self._depth > _MAX_DEPTH:
            return opaque(type(node).__name__.lower(), getattr(node, "lineno", 0))
        self._depth += 1
        try:
            return method(self, node)
        finally:
            self._depth -= 1

    def name_of(self, node: ast.expr) -> str:
        """The dotted name, local variables shadowing imports."""
        return self._names.resolve(node)

    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign to a target."""
        if isinstance(target, ast.Name):
            self.environment[target.id] = value
        elif isinstance(target, ast.Attribute):
            name = _key(target)
            if name:
                self.environment[name] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.elements
            for position, one in enumerate(target.elts):
                if parts is not None and len(parts) == len(target.elts):
                    self.bind(one, parts[position])
                else:
                    self.bind(one, value.element)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value)
        elif isinstance(target, ast.Subscript):
            name = _key(target.value)
            if name:
                self.environment[name] = join([self.environment.get(name, CONSTANT), value.part()])

    # Expressions, by node type.

    def _constant(self, node: ast.Constant) -> Value:
        return Value(text=node.value) if isinstance(node.value, str) else CONSTANT

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
        key = _key(node)
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

    def _joined(self, node: ast.JoinedStr) -> Value:
        parts = []
        for one in node.values:
            if isinstance(one, ast.FormattedValue):
                value = self(one.value)
                if one.conversion == 114:  # !r
                    value = value.cleaned([SinkKind.LOG])
                if isinstance(one.format_spec, ast.JoinedStr) and _is_numeric_format(
                    one.format_spec
                ):
                    value = value.cleaned()
                parts.append(value)
            else:
                parts.append(self(one))
        return concat(parts)

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self(node.left), self(node.right)
        if isinstance(node.op, ast.Mod) and (
            left.text is not None or isinstance(node.left, ast.JoinedStr)
        ):
            parts = right.elements if right.elements is not None else (right,)
            if (
                left.is_constant
                and left.text is not None
                and "%s" not in left.text
                and "%(" not in left.text
                and "%r" not in left.text
            ):
                return Value(text=left.text)
            return concat([left, *parts], text=(left.text or "").replace("%s", HOLE))
        if isinstance(node.op, ast.Add):
            if left.elements is not None and right.elements is not None:
                return Value(join([left, right]).origins, elements=left.elements + right.elements)
            if left.text is None and right.text is None and not (left.built or right.built):
                return join([left, right])
            return concat([left, right])
        if isinstance(node.op, ast.Mult) and (left.text is not None or right.text is not None):
            return left if left.text is not None else right
        if isinstance(node.op, ast.Div):  # pathlib's
            return join([left, right]) if left.origins or right.origins else CONSTANT
        merged = join([left, right])
        return Value(merged.origins, merged.clean)

    def _either(self, node: ast.BoolOp) -> Value:
        return join([self(value) for value in node.values])

    def _conditional(self, node: ast.IfExp) -> Value:
        self(node.test)
        guard = guard_of(node.test, self, self.name_of)
        branches = []
        for branch, cleaned in ((node.body, guard.if_true), (node.orelse, guard.if_false)):
            value = self(branch)
            if value.origins and all(origin in cleaned for origin in value.origins):
                value = value.cleaned(
                    frozenset.intersection(*(cleaned[one] for one in value.origins))
                )
            branches.append(value)
        return join(branches)

    def _display(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        values = tuple(self(one) for one in node.elts)
        starred = any(isinstance(one, ast.Starred) for one in node.elts)
        merged = join([value.part() if value.origins else CONSTANT for value in values])
        return Value(
            merged.origins, merged.clean, elements=None if starred or len(values) > 50 else values
        )

    def _dict(self, node: ast.Dict) -> Value:
        for key in node.keys:
            self(key)
        merged = join([self(value).part() for value in node.values])
        return Value(merged.origins, merged.clean)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> Value:
        before = dict(self.environment)
        for generator in node.generators:
            self.bind(generator.target, self(generator.iter).element)
            for test in generator.ifs:
                self(test)
                self.apply(guard_of(test, self, self.name_of).if_true)
        value = (
            join([self(node.key), self(node.value)])
            if isinstance(node, ast.DictComp)
            else self(node.elt)
        )
        self.environment = before
        return Value(value.origins, value.clean, value.built, value.text)

    def apply(self, cleaned: Cleaned) -> None:
        """Mark variables whose origins were all checked as clean."""
        if not cleaned:
            return
        for name, value in list(self.environment.items()):
            if value.origins and all(origin in cleaned for origin in value.origins):
                kinds = frozenset.intersection(*(cleaned[one] for one in value.origins))
                self.environment[name] = value.cleaned(kinds)

    def _walrus(self, node: ast.NamedExpr) -> Value:
        value = self(node.value)
        self.bind(node.target, value)
        return value

    def _through(self, node: ast.Await | ast.Starred | ast.YieldFrom | ast.FormattedValue) -> Value:
        return self(node.value)

    def _yield(self, node: ast.Yield) -> Value:
        self(node.value)
        return opaque("yield", node.lineno)

    def _compare(self, node: ast.Compare) -> Value:
        self(node.left)
        for one in node.comparators:
            self(one)
        return CONSTANT

    def _unary(self, node: ast.UnaryOp) -> Value:
        value = self(node.operand)
        return CONSTANT if isinstance(node.op, ast.Not) else value

    def _lambda(self, node: ast.Lambda) -> Value:
        before = dict(self.environment)
        for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.environment[parameter.arg] = opaque(parameter.arg, node.lineno)
        self(node.body)
        self.environment = before
        return CONSTANT

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
        if name in CLEANING:
            return join([one.part() for one in given]).cleaned(CLEANING[name])
        if receiver is not None:
            result = self._method(node, last, receiver, arguments, keywords)
            if result is not None and name not in PASSING:
                return result
        if CLEANING_NAME.search(last):
            return join([one.part() for one in given]).cleaned()
        if name in PASSING:
            merged = join(given) if len(given) == 1 else join([one.part() for one in given])
            keep = name in (
                "str",
                "bytes",
                "format",
                "textwrap.dedent",
                "typing.cast",
                "list",
                "tuple",
                "sorted",
            )
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
        if method in CLEANING_METHODS:
            return join([receiver, *arguments]).part().cleaned(CLEANING_METHODS[method])
        if method in MUTATING_METHODS:
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
        if method in PASSING_METHODS and not receiver.is_constant:
            kept = method in (
                "strip",
                "lower",
                "upper",
                "replace",
                "encode",
                "rstrip",
                "lstrip",
                "expandtabs",
            )
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
        if receiver.text is not None and receiver.is_constant and method in PASSING_METHODS:
            return join([receiver, *arguments])
        if receiver.is_constant and method in (
            "items",
            "keys",
            "values",
            "copy",
            "split",
            "encode",
        ):
            return CONSTANT
        return None

    def _mutate(self, node: ast.Call, receiver: Value, given: list[Value]) -> None:
        if not isinstance(node.func, ast.Attribute):
            return
        name = _key(node.func.value)
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

    _METHODS: dict[type, Callable[..., Value]] = {  # noqa: RUF012
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.JoinedStr: _joined,
        ast.BinOp: _binary,
        ast.BoolOp: _either,
        ast.IfExp: _conditional,
        ast.List: _display,
        ast.Tuple: _display,
        ast.Set: _display,
        ast.Dict: _dict,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
        ast.NamedExpr: _walrus,
        ast.Await: _through,
        ast.Starred: _through,
        ast.YieldFrom: _through,
        ast.FormattedValue: _through,
        ast.Yield: _yield,
        ast.Compare: _compare,
        ast.UnaryOp: _unary,
        ast.Lambda: _lambda,
        ast.Call: _call,
    }


def _key(node: ast.expr) -> str:
    """`self.name` and plain names as environment keys; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _key(node.value)
        return f"{inner}.{node.attr}" if inner and inner.count(".") < 4 else ""
    return ""


def _is_numeric_format(spec: ast.JoinedStr) -> bool:
    last = spec.values[-1] if spec.values else None
    return isinstance(last, ast.Constant) and str(last.value)[-1:] in tuple("dfxXbeg%")


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
