"""`Evaluator`: the abstract value of an expression in an environment, whatever the language.

The forms of expressions are those of Python's `ast`: constants, strings put together, operators, containers,
conditions. What names, members and calls mean depends on the language: `PythonEvaluator` and `TreeEvaluator` add
them. Other languages' expressions become those of `ast` one level at a time, when they are evaluated.
"""

import ast
from collections.abc import Callable, Mapping
from typing import ClassVar

from agents.detectors.security.taint.guards import Cleaned, guard_of
from agents.detectors.security.taint.value import (
    CONSTANT,
    HOLE,
    SinkKind,
    Value,
    concat,
    join,
    opaque,
)

Environment = dict[str, Value]


class Evaluator:
    """Values of expressions; assigns through walrus."""

    forms: ClassVar[Mapping[type[ast.expr], Callable[..., Value]]]
    """How to evaluate each class of expressions; anything else is unknown."""
    max_depth: ClassVar[int] = 60

    def __init__(self) -> None:
        self.environment: Environment = {}
        self.depth = 0

    def __call__(self, node: ast.expr | None) -> Value:
        """The value of an expression; unknown at absurd depth."""
        if node is None:
            return CONSTANT
        form = self.forms.get(type(node))
        if form is None or self.depth > self.max_depth:
            return opaque(type(node).__name__.lower(), getattr(node, "lineno", 0))
        self.depth += 1
        try:
            return form(self, node)
        finally:
            self.depth -= 1

    def name_of(self, node: ast.expr) -> str:
        """The dotted name of an expression, or empty."""
        return ""

    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign to a target."""
        if isinstance(target, ast.Name):
            self.environment[target.id] = value
        elif isinstance(target, ast.Attribute):
            name = environment_key(target)
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
            name = environment_key(target.value)
            if name:
                self.environment[name] = join([self.environment.get(name, CONSTANT), value.part()])

    def _constant(self, node: ast.Constant) -> Value:
        return Value(text=node.value) if isinstance(node.value, str) else CONSTANT

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


Evaluator.forms = {
    ast.Constant: Evaluator._constant,
    ast.JoinedStr: Evaluator._joined,
    ast.BinOp: Evaluator._binary,
    ast.BoolOp: Evaluator._either,
    ast.IfExp: Evaluator._conditional,
    ast.List: Evaluator._display,
    ast.Tuple: Evaluator._display,
    ast.Set: Evaluator._display,
    ast.Dict: Evaluator._dict,
    ast.ListComp: Evaluator._comprehension,
    ast.SetComp: Evaluator._comprehension,
    ast.GeneratorExp: Evaluator._comprehension,
    ast.DictComp: Evaluator._comprehension,
    ast.NamedExpr: Evaluator._walrus,
    ast.Await: Evaluator._through,
    ast.Starred: Evaluator._through,
    ast.YieldFrom: Evaluator._through,
    ast.FormattedValue: Evaluator._through,
    ast.Yield: Evaluator._yield,
    ast.Compare: Evaluator._compare,
    ast.UnaryOp: Evaluator._unary,
    ast.Lambda: Evaluator._lambda,
}


def environment_key(node: ast.expr) -> str:
    """`self.name` and plain names as environment keys; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = environment_key(node.value)
        return f"{inner}.{node.attr}" if inner and inner.count(".") < 4 else ""
    return ""


def _is_numeric_format(spec: ast.JoinedStr) -> bool:
    last = spec.values[-1] if spec.values else None
    return isinstance(last, ast.Constant) and str(last.value)[-1:] in tuple("dfxXbeg%")
