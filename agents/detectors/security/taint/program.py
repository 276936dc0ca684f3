"""`Program`: all Python modules of a workspace, walked until the summaries of functions no longer change.

Cost: one walk of every function a round, at most `MAX_ROUNDS` rounds; a round after the second walks only functions
that call one whose summary changed.
"""

import ast
from collections.abc import Callable, Iterable, Iterator

from agents.detectors.audit.python_module import PythonModule
from agents.detectors.python_names import module_name
from agents.detectors.security.taint.sources import parameter_values, route_of
from agents.detectors.security.taint.summary import Function, Hit, Summary
from agents.detectors.security.taint.value import Trust, Value, join, opaque
from agents.detectors.security.taint.walk import FunctionWalk

MAX_ROUNDS = 4


class Program:
    """Functions, classes and variables by qualified name. Use from one thread."""

    def __init__(
        self, modules: Iterable[PythonModule], check: Callable[[], None] = lambda: None
    ) -> None:
        """Index the modules.

        Args:
            modules: parsed files.
            check: called between files; raises to stop.
        """
        self._modules = list(modules)
        self._check = check
        self._functions: dict[str, Function] = {}
        self._bases: dict[str, list[str]] = {}
        self._fields: dict[tuple[str, str], Value] = {}
        self._variables: dict[str, Value] = {}
        self._suffixes: dict[str, str] = {}
        self._current = ""
        for module in self._modules:
            self._index(module)

    def hits(self) -> set[Hit]:
        """Everything that reaches a sink, with the trust of its callers' data.

        Raises:
            Cancelled: `check` says so.
        """
        found: dict[str, set[Hit]] = {}
        changed: set[str] | None = None
        for number in range(MAX_ROUNDS):
            now: set[str] = set()
            for module in self._modules:
                self._check()
                hits, names = self._walk_module(module, changed)
                found |= hits
                now |= names
            if not now:
                break
            # The second round is complete, too: it sees the variables and fields that the first has found.
            changed = None if number == 0 else now
        return {hit for hits in found.values() for hit in hits}

    def only_constants_reach(self, hit: Hit) -> bool:
        """Whether every call seen passes constants for the parameters that reach the sink."""
        function = self._functions.get(hit.function)
        if function is None or not function.calls or route_of(function.node, function.module.names):
            return False
        names = [origin.text for origin in hit.origins if origin.trust is Trust.PARAMETER]
        return bool(names) and all(
            function.arguments.get(name, Trust.CONSTANT) is Trust.CONSTANT for name in names
        )

    def is_private(self, hit: Hit) -> bool:
        """Whether the sink lies in a function that is not meant to be called from other modules."""
        function = self._functions.get(hit.function)
        return function is not None and function.is_private

    # Resolver.

    def function(self, name: str) -> Function | None:
        """See `Resolver.function`."""
        full = self._full(name)
        found = self._functions.get(full)
        if found is not None:
            return found
        owner, _, method = full.rpartition(".")
        for base in self._bases.get(owner, [])[:5]:
            inherited = self._functions.get(f"{self._full(base)}.{method}")
            if inherited is not None:
                return inherited
        return None

    def class_of(self, name: str) -> str:
        """See `Resolver.class_of`."""
        full = self._full(name)
        return full if full in self._bases else ""

    def attribute(self, owner: str, name: str) -> Value | None:
        """See `Resolver.attribute`."""
        return self._fields.get((owner, name))

    def variable(self, name: str) -> Value | None:
        """See `Resolver.variable`."""
        return self._variables.get(self._full(name))

    def _full(self, name: str) -> str:
        """The qualified name: as it is, in the current module, or beneath another import root."""
        local = f"{self._current}.{name}"
        if local in self._functions or local in self._bases or local in self._variables:
            return local
        head, _, tail = name.rpartition(".")
        if head in self._suffixes:
            return f"{self._suffixes[head]}.{tail}"
        outer, _, inner = head.rpartition(".")
        if outer in self._suffixes:
            return f"{self._suffixes[outer]}.{inner}.{tail}"
        return name

    def _index(self, module: PythonModule) -> None:
        name = module_name(module.file.path)
        parts = name.split(".")
        for start in range(len(parts)):
            self._suffixes.setdefault(".".join(parts[start:]), name)
        for owner, node in _definitions(module.tree):
            qualified = ".".join(part for part in (name, owner, node.name) if part)
            if isinstance(node, ast.ClassDef):
                self._bases[qualified] = [
                    base if "." in base else f"{name}.{base}"
                    for base in (module.names.resolve(one) for one in node.bases)
                ]
            else:
                self._functions[qualified] = Function(
                    qualified, module, node, f"{name}.{owner}" if owner else ""
                )

    def _walk_module(
        self, module: PythonModule, changed: set[str] | None
    ) -> tuple[dict[str, set[Hit]], set[str]]:
        """The hits of a module by function, and the names of the functions whose summaries changed.

        Args:
            module: the module.
            changed: functions whose summaries changed; only what calls one is walked. None walks all.
        """
        self._current = name = module_name(module.file.path)
        hits: dict[str, set[Hit]] = {}
        now: set[str] = set()
        if changed is None:
            hits |= self._walk_top(module, name)
        for owner, node in _definitions(module.tree):
            if isinstance(node, ast.ClassDef):
                continue
            qualified = ".".join(part for part in (name, owner, node.name) if part)
            function = self._functions[qualified]
            if function.node is not node:
                continue  # defined again further down
            if changed is not None and changed.isdisjoint(function.callees):
                continue
            hits[qualified], summary = self._walk_function(function)
            if summary != function.summary:
                function.summary = summary
                now.add(qualified)
        return hits, now

    def _walk_top(self, module: PythonModule, name: str) -> dict[str, set[Hit]]:
        """The hits of a module's own statements and of those of its classes."""
        hits: dict[str, set[Hit]] = {}
        top = FunctionWalk(module, self, {}, function=f"{name}.<module>")
        top.run(
            [
                one
                for one in module.tree.body
                if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
        )
        hits[f"{name}.<module>"] = top.hits
        for variable, value in top.evaluate.environment.items():
            if variable.isidentifier():
                self._variables[f"{name}.{variable}"] = value
        for _, node in _definitions(module.tree):
            if isinstance(node, ast.ClassDef):
                qualified = f"{name}.{node.name}"
                hits[f"{qualified}.<class>"] = self._walk_class_body(module, node, qualified)
        return hits

    def _walk_class_body(
        self, module: PythonModule, node: ast.ClassDef, qualified: str
    ) -> set[Hit]:
        walk = FunctionWalk(module, self, {}, function=qualified)
        walk.run(
            [
                one
                for one in node.body
                if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
        )
        for name, value in walk.evaluate.environment.items():
            self._fields[qualified, name] = value
        return walk.hits

    def _walk_function(self, function: Function) -> tuple[set[Hit], Summary]:
        module, node = function.module, function.node
        environment = parameter_values(node, module.names, in_class=bool(function.owner))
        walk = FunctionWalk(
            module,
            self,
            environment,
            function=function.name,
            owner=function.owner,
            is_route=route_of(node, module.names) is not None,
        )
        walk.run(node.body)
        function.callees = frozenset(walk.callees)
        if function.owner:
            for name, value in walk.fields.items():
                known = self._fields.get((function.owner, name))
                kept = value if value.trust is not Trust.PARAMETER else _as_field(value, name)
                self._fields[function.owner, name] = kept if known is None else join([known, kept])
        returns = join(walk.returned)
        passing = frozenset(
            hit for hit in walk.hits if any(one.trust is Trust.PARAMETER for one in hit.origins)
        )
        return walk.hits, Summary(returns, frozenset(sorted(passing, key=repr)[:50]))


def _as_field(value: Value, name: str) -> Value:
    """A constructor's parameter kept in a field is unknown to the other methods."""
    return Value(
        frozenset(
            [one for one in value.origins if one.trust >= Trust.LOCAL]
            + list(opaque(f"self.{name}").origins)
        ),
        value.clean,
        value.built,
        value.text,
        type=value.type,
    )


def _definitions(
    tree: ast.Module,
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Top-level functions and classes, and methods with the name of their class."""
    pending: list[tuple[str, list[ast.stmt]]] = [("", tree.body)]
    while pending:
        owner, body = pending.pop(0)
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield owner, node
            elif isinstance(node, ast.ClassDef) and not owner:
                yield owner, node
                pending.append((node.name, node.body))
            elif isinstance(node, ast.If | ast.Try):
                inner = [*node.body, *node.orelse]
                if isinstance(node, ast.Try):
                    inner += [one for handler in node.handlers for one in handler.body]
                pending.append((owner, inner))
