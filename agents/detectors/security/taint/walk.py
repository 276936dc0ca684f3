"""`FunctionWalk`: interprets the statements of one Python function and records what reaches sinks."""

import ast
from typing import Protocol

from agents.detectors.audit.python_module import PythonModule
from agents.detectors.security.taint.evaluate import Environment
from agents.detectors.security.taint.guards import always_leaves, checked_by_call, guard_of
from agents.detectors.security.taint.python_values import PythonEvaluator
from agents.detectors.security.taint.sink_check import reached_sinks
from agents.detectors.security.taint.sources import route_of
from agents.detectors.security.taint.summary import Function, Hit
from agents.detectors.security.taint.value import CONSTANT, SinkKind, Trust, Value, join, opaque

_MAX_STATEMENT_DEPTH = 40
_FLASK_RESPONSES = ("flask", "bottle", "sanic", "quart")


class Resolver(Protocol):
    """What a walk asks about the rest of the program."""

    def function(self, name: str) -> Function | None:
        """The function with this qualified name, methods of base classes included."""
        ...

    def class_of(self, name: str) -> str:
        """The qualified name of a class that a dotted name stands for, or empty."""
        ...

    def attribute(self, owner: str, name: str) -> Value | None:
        """The value of an attribute of a class's instances."""
        ...

    def variable(self, name: str) -> Value | None:
        """The value of a module's variable, or None."""
        ...


class FunctionWalk:
    """One pass over a body. `hits` and `returns` hold the result; `fields` the assignments to `self`."""

    def __init__(
        self,
        module: PythonModule,
        resolver: Resolver,
        environment: Environment,
        *,
        function: str,
        owner: str = "",
        is_route: bool = False,
    ) -> None:
        self.hits: set[Hit] = set()
        self.callees: set[str] = set()
        self.returned: list[Value] = []
        self.evaluate = PythonEvaluator(module.names, self)
        self.evaluate.environment = environment
        self._module = module
        self._resolver = resolver
        self._function = function
        self._owner = owner
        self._is_route = is_route
        self._local: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self._depth = 0

    @property
    def fields(self) -> dict[str, Value]:
        """Attributes of `self` that were assigned."""
        return {
            name[5:]: value
            for name, value in self.evaluate.environment.items()
            if name.startswith("self.") and name.count(".") == 1
        }

    def run(self, body: list[ast.stmt]) -> None:
        """Interpret statements in order."""
        if self._depth > _MAX_STATEMENT_DEPTH:
            return
        self._depth += 1
        for statement in body:
            self._statement(statement)
        self._depth -= 1

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self.evaluate(node.value)
            for target in node.targets:
                self.evaluate.bind(target, value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.evaluate.bind(node.target, self.evaluate(node.value))
        elif isinstance(node, ast.AugAssign):
            operation = ast.BinOp(_loaded(node.target), node.op, node.value)
            ast.copy_location(operation, node)
            self.evaluate.bind(node.target, self.evaluate(operation))
        elif isinstance(node, ast.Expr):
            self.evaluate(node.value)
            call = node.value.value if isinstance(node.value, ast.Await) else node.value
            if isinstance(call, ast.Call):
                self.evaluate.apply(checked_by_call(call, self.evaluate, self.evaluate.name_of))
        elif isinstance(node, ast.Return):
            value = self.evaluate(node.value)
            self.returned.append(value)
            self._check_response(node, value)
        elif isinstance(node, ast.If):
            self._if(node)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._loop(node.body, node.orelse, target=node.target, source=node.iter)
        elif isinstance(node, ast.While):
            self.evaluate(node.test)
            self._loop(node.body, node.orelse, test=node.test)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                value = self.evaluate(item.context_expr)
                if item.optional_vars is not None:
                    self.evaluate.bind(item.optional_vars, value)
            self.run(node.body)
        elif isinstance(node, ast.Try | ast.TryStar):
            self._try(node)
        elif isinstance(node, ast.Match):
            self._match(node)
        elif isinstance(node, ast.Assert):
            self.evaluate(node.test)
            self.evaluate.apply(guard_of(node.test, self.evaluate, self.evaluate.name_of).if_true)
        elif isinstance(node, ast.Raise):
            self.evaluate(node.exc)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._local[node.name] = node
            self._nested(node)

    def _if(self, node: ast.If) -> None:
        self.evaluate(node.test)
        guard = guard_of(node.test, self.evaluate, self.evaluate.name_of)
        before = dict(self.evaluate.environment)
        self.evaluate.apply(guard.if_true)
        self.run(node.body)
        after_body = self.evaluate.environment
        self.evaluate.environment = before
        self.evaluate.apply(guard.if_false)
        self.run(node.orelse)
        resolve = self.evaluate.name_of
        if always_leaves(node.body, resolve):
            return
        if node.orelse and always_leaves(node.orelse, resolve):
            self.evaluate.environment = after_body
            return
        self.evaluate.environment = _merged(after_body, self.evaluate.environment)

    def _loop(
        self,
        body: list[ast.stmt],
        orelse: list[ast.stmt],
        *,
        target: ast.expr | None = None,
        source: ast.expr | None = None,
        test: ast.expr | None = None,
    ) -> None:
        for _ in range(2):  # the second pass sees what the first one assigned
            before = dict(self.evaluate.environment)
            if target is not None:
                self.evaluate.bind(target, self.evaluate(source).element)
            if test is not None:
                self.evaluate.apply(guard_of(test, self.evaluate, self.evaluate.name_of).if_true)
            self.run(body)
            self.evaluate.environment = _merged(before, self.evaluate.environment)
        self.run(orelse)

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        before = dict(self.evaluate.environment)
        self.run(node.body)
        self.run(node.orelse)
        after = self.evaluate.environment
        joined = _merged(before, after)
        for handler in node.handlers:
            self.evaluate.environment = dict(joined)
            if handler.name:
                self.evaluate.environment[handler.name] = opaque(handler.name, handler.lineno)
            self.run(handler.body)
            if not always_leaves(handler.body, self.evaluate.name_of):
                after = _merged(after, self.evaluate.environment)
        self.evaluate.environment = after
        self.run(node.finalbody)

    def _match(self, node: ast.Match) -> None:
        subject = self.evaluate(node.subject)
        before = self.evaluate.environment
        merged = dict(before)
        for case in node.cases:
            self.evaluate.environment = dict(before)
            for pattern in ast.walk(case.pattern):
                name = getattr(pattern, "name", None)
                if isinstance(name, str):
                    self.evaluate.environment[name] = subject.part()
            self.run(case.body)
            merged = _merged(merged, self.evaluate.environment)
        self.evaluate.environment = merged

    def _nested(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A function inside a function sees the variables around it."""
        from agents.detectors.security.taint.sources import parameter_values

        before = self.evaluate.environment
        returned, self.returned = self.returned, []
        is_route, self._is_route = self._is_route, route_of(node, self._module.names) is not None
        self.evaluate.environment = dict(before) | parameter_values(
            node, self._module.names, in_class=False
        )
        self.run(node.body)
        before[node.name] = CONSTANT
        self.evaluate.environment = before
        self.returned, self._is_route = returned, is_route

    def _check_response(self, node: ast.Return, value: Value) -> None:
        """A route's string is sent as HTML by Flask and its relatives."""
        if not self._is_route or not value.built or SinkKind.HTML in value.clean:
            return
        if not any(self._module.names.imports(name) for name in _FLASK_RESPONSES):
            return
        if value.text and "<" in value.text and value.trust >= Trust.USER:
            self._record(SinkKind.HTML, node, value, "return", Trust.USER)

    # CallHandler.

    def called(
        self,
        call: ast.Call,
        name: str,
        receiver: Value | None,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> Value | None:
        """Record the sinks that the call's arguments reach; the result of a known function."""
        function = self._callee(call, name, receiver)
        if function is not None:
            self.callees.add(function.name)
            return self._known_call(call, function, arguments, keywords)
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        receiver_name = self.evaluate.name_of(owner) if owner is not None else ""
        reached = list(
            reached_sinks(call, name, receiver, arguments, keywords, receiver_name=receiver_name)
        )
        for sink, value in reached:
            if value.built:
                if sink.built is None or value.trust < sink.built:
                    continue
            elif sink.raw is None or value.trust < min(sink.raw, Trust.PARAMETER):
                if not (sink.raw is not None and value.trust >= sink.raw):
                    continue
            shown = name or ast.unparse(call.func)[:60]
            self._record(sink.kind, call, value, shown, sink.raw)
        class_name = self._resolver.class_of(name)
        if class_name:
            return Value(
                join([*arguments, *keywords.values()]).part().origins, type=f"{class_name}()"
            )
        if any(sink.kind in (SinkKind.SQL, SinkKind.HTML) for sink, _ in reached) and name:
            return opaque(f"{name}()", call.lineno)  # reported here, not again where it is used
        if name.endswith((".sql.SQL", ".sql.Identifier", "sql.Literal")):
            return join(arguments).cleaned([SinkKind.SQL])
        return None

    def attribute(self, owner: Value, name: str) -> Value | None:
        """An attribute of an object whose class is part of the program."""
        kind = self._owner if owner is CONSTANT else owner.type.removesuffix("()")
        return self._resolver.attribute(kind, name) if kind else None

    def global_value(self, name: str) -> Value | None:
        """A variable of a module."""
        return self._resolver.variable(name)

    def _callee(self, call: ast.Call, name: str, receiver: Value | None) -> Function | None:
        if isinstance(call.func, ast.Attribute):
            if self._owner and name in (
                f"self.{call.func.attr}",
                f"cls.{call.func.attr}",
                f"super().{call.func.attr}",
            ):
                return self._resolver.function(f"{self._owner}.{call.func.attr}")
            if receiver is not None and receiver.type.endswith("()"):
                found = self._resolver.function(f"{receiver.type[:-2]}.{call.func.attr}")
                if found is not None:
                    return found
        return self._resolver.function(name) if name else None

    def _known_call(
        self, call: ast.Call, function: Function, arguments: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """Substitute the arguments into the summary of a function."""
        parameters = function.parameters
        bound: dict[str, Value] = dict(keywords)
        for position, value in enumerate(arguments):
            if position < len(call.args) and isinstance(call.args[position], ast.Starred):
                for name in parameters[position:]:
                    bound[name] = value.element
                break
            if position < len(parameters):
                bound[parameters[position]] = value
        function.calls += 1
        for name, value in bound.items():
            function.arguments[name] = max(
                function.arguments.get(name, Trust.CONSTANT), value.trust
            )
        summary = function.summary
        if summary is None:
            return opaque(f"{function.node.name}()", call.lineno)
        for hit in summary.hits:
            self._pass_on(call, hit, bound)
        return _substituted(summary.returns, bound)

    def _pass_on(self, call: ast.Call, hit: Hit, bound: dict[str, Value]) -> None:
        """A sink inside a called function that an argument reaches."""
        given = [
            bound[origin.text]
            for origin in hit.origins
            if origin.trust is Trust.PARAMETER and origin.text in bound
        ]
        varying = [value for value in given if value.origins and hit.kind not in value.clean]
        if not varying:
            return
        value = join(varying)
        if hit.built or not value.built:
            self.hits.add(hit.with_origins(value.origins, self._function))
        else:  # the string is put together here
            self._record(hit.kind, call, value, hit.call, hit.raw)

    def _record(
        self,
        kind: SinkKind,
        node: ast.Call | ast.Return,
        value: Value,
        call: str,
        raw: Trust | None,
    ) -> None:
        self.hits.add(
            Hit(
                kind,
                self._module.file.path,
                node.lineno,
                node.end_lineno or node.lineno,
                value.built,
                call,
                value.origins,
                self._function,
                raw,
            )
        )


def _substituted(returns: Value, bound: dict[str, Value]) -> Value:
    """A summary's result with the caller's arguments in place of parameters."""
    parts: list[Value] = []
    rest = []
    for origin in returns.origins:
        if origin.trust is Trust.PARAMETER:
            if origin.text in bound:
                parts.append(bound[origin.text].cleaned(returns.clean))
        else:
            rest.append(origin)
    if rest:
        parts.append(Value(frozenset(rest), returns.clean))
    merged = join(parts)
    return Value(
        merged.origins,
        merged.clean,
        built=(returns.built or merged.built) and bool(merged.origins),
        text=returns.text if returns.text is not None else merged.text,
        elements=None
        if returns.elements is None
        else tuple(_substituted(one, bound) for one in returns.elements),
        type=returns.type,
    )


def _merged(one: Environment, other: Environment) -> Environment:
    merged = dict(one)
    for name, value in other.items():
        merged[name] = join([one[name], value]) if name in one else value
    return merged


def _loaded(target: ast.expr) -> ast.expr:
    """An assignment's target as an expression."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    return target
