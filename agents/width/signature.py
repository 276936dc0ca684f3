"""`Signature`: what is asked to be defined: a function, a method or a class, and its parameters."""

import ast
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Signature:
    """A definition.

    Attributes:
        name: dotted for a method, such as `Cache.get`.
        parameters: names in order, with `*` and `**`; None if any will do.
        is_class: whether it is a class.
        is_async: whether it is a coroutine function.
    """

    name: str
    parameters: tuple[str, ...] | None = None
    is_class: bool = False
    is_async: bool = False

    @classmethod
    def of(cls, node: Definition, name: str = "") -> "Signature":
        """The signature of a definition."""
        if isinstance(node, ast.ClassDef):
            return cls(name or node.name, None, is_class=True)
        return cls(
            name or node.name,
            parameters_of(node),
            is_async=isinstance(node, ast.AsyncFunctionDef),
        )

    def shown(self) -> str:
        """As a person writes it."""
        if self.is_class:
            return f"class {self.name}"
        inside = "…" if self.parameters is None else ", ".join(self.parameters)
        return f"{'async ' * self.is_async}def {self.name}({inside})"


def parameters_of(node: Function) -> tuple[str, ...]:
    """Names of parameters, `*args` and `**more` with their stars, keyword-only ones after a `*`."""
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args)]
    if given.vararg:
        names.append(f"*{given.vararg.arg}")
    elif given.kwonlyargs:
        names.append("*")
    names += [one.arg for one in given.kwonlyargs]
    if given.kwarg:
        names.append(f"**{given.kwarg.arg}")
    return tuple(names)


def definition_in(tree: ast.AST, name: str) -> Definition | None:
    """The last definition of a dotted name in a tree, as it would be in force."""
    head, _, rest = name.partition(".")
    found: Definition | None = None
    for node in _statements(tree):
        if isinstance(node, Definition) and node.name == head:
            found = node
    if rest and found is not None:
        return definition_in(found, rest) if isinstance(found, ast.ClassDef) else None
    return found


def _statements(tree: ast.AST) -> list[ast.stmt]:
    """The statements of a body, those below `if`, `try` and `with` included."""
    found: list[ast.stmt] = []
    for name in ("body", "orelse", "finalbody"):
        for one in getattr(tree, name, ()):
            found.append(one)
            if isinstance(one, ast.If | ast.Try | ast.With):
                found += _statements(one)
                for handler in getattr(one, "handlers", ()):
                    found += _statements(handler)
    return found
