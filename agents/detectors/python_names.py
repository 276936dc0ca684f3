"""`ImportedNames`: what a name in a Python file stands for, with import aliases resolved."""

import ast
from collections.abc import Iterable
from pathlib import PurePosixPath

_MAX_CHAIN = 40


def module_name(path: str) -> str:
    """The dotted name of the module in a file, taking the root as the import root."""
    parts = PurePosixPath(path).with_suffix("").parts
    if parts and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


class ImportedNames:
    """Dotted names of a module's expressions, such as `subprocess.run` for `r` after `from subprocess import run as r`.

    Imports anywhere in the file count for the whole file. Immutable once made.
    """

    def __init__(
        self, tree: ast.Module, path: str = "", imports: Iterable[ast.AST] | None = None
    ) -> None:
        """Read the imports of a tree; `imports` are its import statements, if they are known."""
        self._aliases: dict[str, str] = {}
        package = module_name(path).split(".")
        if not path.endswith("__init__.py"):
            package = package[:-1]
        for node in ast.walk(tree) if imports is None else imports:
            if isinstance(node, ast.Import):
                for name in node.names:
                    top = name.name if name.asname else name.name.partition(".")[0]
                    self._aliases[name.asname or top] = top
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    above = package[: max(0, len(package) - node.level + 1)]
                    base = ".".join([*above, base] if base else above)
                for name in node.names:
                    self._aliases[name.asname or name.name] = f"{base}.{name.name}".lstrip(".")
        for statement in tree.body:  # `run = subprocess.run`
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                value = self.resolve(statement.value)
                if (
                    isinstance(target, ast.Name)
                    and isinstance(statement.value, ast.Attribute)
                    and value.partition(".")[0] in self.modules
                ):
                    self._aliases.setdefault(target.id, value)

    @property
    def modules(self) -> frozenset[str]:
        """First parts of everything imported."""
        return frozenset(target.partition(".")[0] for target in self._aliases.values())

    def imports(self, module: str) -> bool:
        """Whether anything beneath `module` is imported."""
        return any(
            target == module or target.startswith(module + ".") for target in self._aliases.values()
        )

    def is_imported(self, name: str) -> bool:
        """Whether the plain name was bound by an import."""
        return name in self._aliases

    def resolve(self, node: ast.expr | None) -> str:
        """The dotted name of a name, attribute chain or `getattr` with a constant; empty for anything else.

        A call in the chain is written `()`: `hashlib.new("md5").update` is `hashlib.new().update`.
        """
        parts: list[str] = []
        for _ in range(_MAX_CHAIN):
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
                node = node.value
            elif isinstance(node, ast.Call):
                special = self._dynamic(node)
                if special is not None:
                    return ".".join([special, *reversed(parts)])
                inner = self.resolve(node.func)
                return ".".join([f"{inner}()", *reversed(parts)]) if inner else ""
            elif isinstance(node, ast.Subscript):
                inner = self.resolve(node.value)
                return ".".join([f"{inner}[]", *reversed(parts)]) if inner else ""
            elif isinstance(node, ast.Await):
                node = node.value
            elif isinstance(node, ast.Name):
                name = self._aliases.get(node.id, node.id)
                return ".".join([name, *reversed(parts)])
            else:
                return ""
        return ""

    def _dynamic(self, call: ast.Call) -> str | None:
        """`getattr(os, "system")`, `__import__("os")` and `importlib.import_module("os")`."""
        # Only plain names and `x.import_module`: `resolve` follows the others itself, and looking at each
        # call of a chain twice takes exponential time.
        plain = isinstance(call.func, ast.Name) or (
            isinstance(call.func, ast.Attribute) and call.func.attr == "import_module"
        )
        if not plain or not call.args:
            return None
        name = self.resolve(call.func)
        first = call.args[0]
        if name in ("__import__", "importlib.import_module"):
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                return first.value
        elif name == "getattr" and len(call.args) >= 2:
            member = call.args[1]
            if isinstance(member, ast.Constant) and isinstance(member.value, str):
                inner = self.resolve(first)
                return f"{inner}.{member.value}" if inner else None
        return None


def argument(call: ast.Call, position: int | None, *keywords: str) -> ast.expr | None:
    """The argument at a position or with one of these keywords, or None."""
    for keyword in call.keywords:
        if keyword.arg in keywords:
            return keyword.value
    if position is None or position >= len(call.args):
        return None
    if any(isinstance(arg, ast.Starred) for arg in call.args[: position + 1]):
        return None
    return call.args[position]


def constant(node: ast.expr | None) -> object:
    """The value of a constant expression, or None; `-1` and `60 * 60` are constants, too."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = constant(node.operand)
        return -value if isinstance(value, int | float) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add | ast.Pow):
        left, right = constant(node.left), constant(node.right)
        if isinstance(left, int) and isinstance(right, int):
            if isinstance(node.op, ast.Pow):
                return left**right if abs(left) < 1_000 and 0 <= right < 64 else None
            return left * right if isinstance(node.op, ast.Mult) else left + right
    return None


def is_true(node: ast.expr | None) -> bool:
    """Whether the expression is the constant True."""
    return constant(node) is True


def is_false(node: ast.expr | None) -> bool:
    """Whether the expression is the constant False."""
    return constant(node) is False
