"""`PythonModule`: a Python file with what every check asks: parents, imports, functions, scopes.

Built once per file in O(nodes); nothing here is recursive, so deep trees do no harm. Nothing is executed.
"""

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar, cast

from agents.detectors.python_names import ImportedNames
from agents.workspace.source_file import SourceFile

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Scope = FunctionNode | ast.Lambda | ast.ClassDef | ast.Module
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
TERMINATORS = (ast.Return, ast.Raise, ast.Continue, ast.Break)

_Node = TypeVar("_Node", bound=ast.AST)


class PythonModule:
    """The syntax tree of one file with its indexes.

    Attributes:
        file: the file.
        tree: its tree.
        nodes: all nodes in the order of `ast.walk`.
        parent: the parent of each node but the root.
        definitions: by scope, the values of names that it binds once; filled by `guards.definition`.
    """

    def __init__(self, file: SourceFile, tree: ast.Module) -> None:
        self.file = file
        self.tree = tree
        self.nodes: list[ast.AST] = []
        self._by_class: dict[type[ast.AST], list[ast.AST]] = {}
        self.parent: dict[ast.AST, ast.AST] = {}
        self.definitions: dict[ast.AST, dict[str, ast.expr | None]] = {}
        for node in ast.walk(tree):
            self.nodes.append(node)
            self._by_class.setdefault(type(node), []).append(node)
            for child in ast.iter_child_nodes(node):
                self.parent[child] = node

    def of(self, *kinds: type[_Node]) -> Iterator[_Node]:
        """All nodes of these classes, outer before inner."""
        if len(kinds) == 1 and kinds[0] in self._by_class:
            return iter(cast("list[_Node]", self._by_class[kinds[0]]))
        return (node for node in self.nodes if isinstance(node, kinds))

    @cached_property
    def functions(self) -> list[FunctionNode]:
        """All functions and methods."""
        return list(self.of(ast.FunctionDef, ast.AsyncFunctionDef))

    @cached_property
    def imports(self) -> dict[str, str]:
        """Dotted name by local name, such as `{"r": "subprocess.run", "np": "numpy"}`."""
        names: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    local = alias.asname or alias.name.split(".")[0]
                    names[local] = alias.name if alias.asname else local
            elif isinstance(node, ast.ImportFrom):
                source = "." * node.level + (node.module or "")
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{source}.{alias.name}"
        return names

    @cached_property
    def names(self) -> ImportedNames:
        """What names stand for, relative imports and aliases of functions resolved."""
        return ImportedNames(self.tree, self.file.path, self.of(ast.Import, ast.ImportFrom))

    @cached_property
    def calls(self) -> tuple[tuple[ast.Call, str], ...]:
        """All calls with the dotted name of what is called."""
        return tuple((call, self.names.resolve(call.func)) for call in self.of(ast.Call))

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """What a name is assigned anywhere in the module; names with different values are left out."""
        found: dict[str, ast.expr | None] = {}
        assignments: list[ast.Assign | ast.AnnAssign] = [
            *self.of(ast.Assign),
            *self.of(ast.AnnAssign),
        ]
        for node in assignments:
            if node.value is None:
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    known = found.setdefault(target.id, node.value)
                    if known is not None and known is not node.value:
                        same = ast.dump(known) == ast.dump(node.value)
                        found[target.id] = known if same else None
        return {name: value for name, value in found.items() if value is not None}

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the parent to the module."""
        while (parent := self.parent.get(node)) is not None:
            yield parent
            node = parent

    def scope_of(self, node: ast.AST) -> Scope:
        """The innermost function, lambda, class or module around a node."""
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, _SCOPES):
                return ancestor
        return self.tree

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function around a node."""
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, ast.FunctionDef | ast.AsyncFunctionDef):
                return ancestor
        return None

    def class_of(self, function: ast.AST) -> ast.ClassDef | None:
        """The class whose method a function is."""
        parent = self.parent.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None

    def statement_of(self, node: ast.AST) -> ast.AST:
        """The innermost statement that holds a node, or the node itself."""
        while not isinstance(node, ast.stmt) and node in self.parent:
            node = self.parent[node]
        return node

    def loop_of(self, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | None:
        """The innermost loop in whose body a node runs, within the same function."""
        child = node
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, _SCOPES):
                return None
            if isinstance(ancestor, LOOPS) and child in ancestor.body:
                return ancestor
            child = ancestor
        return None

    def qualified(self, node: ast.AST) -> str | None:
        """The dotted name of a name or attribute, its imports resolved, or None."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        parts.append(self.imports.get(node.id, node.id))
        return ".".join(reversed(parts))

    def call_name(self, call: ast.Call) -> str:
        """The dotted name of what is called, or an empty text."""
        return self.qualified(call.func) or ""


def module_of(file: SourceFile) -> PythonModule | None:
    """The module of a file, or None if the file is no valid Python."""
    return file.derived(_build)


def _build(file: SourceFile) -> PythonModule | None:
    return None if file.python is None else PythonModule(file, file.python)


def shape(node: ast.AST) -> str:
    """A text that is equal for equal code; unique for code nested too deeply to compare."""
    if isinstance(node, ast.Name):
        return node.id
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return f"<{id(node)}>"


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, class or module without those of scopes nested in it."""
    stack = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statement lists of a compound statement."""
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def terminates(block: list[ast.stmt]) -> bool:
    """Whether control never passes the end of a block: it returns, raises, breaks, continues or exits."""
    work = [block]
    while work:
        current = work.pop()
        if not current:
            return False
        last = current[-1]
        if any(isinstance(one, TERMINATORS) for one in current):
            continue
        if isinstance(last, ast.If) and last.orelse:
            work += [last.body, last.orelse]
        elif isinstance(last, ast.With | ast.AsyncWith):
            work.append(last.body)
        elif isinstance(last, ast.Expr) and _exits(last.value):
            continue
        else:
            return False
    return True


def _exits(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("exit", "_exit", "abort", "fail", "skip", "quit", "error", "assert_never")


def parameters(function: FunctionNode | ast.Lambda) -> list[ast.arg]:
    """All parameters in the order of the signature, `*args` and `**kwargs` included."""
    arguments = function.args
    found = [*arguments.posonlyargs, *arguments.args]
    if arguments.vararg:
        found.append(arguments.vararg)
    found += arguments.kwonlyargs
    if arguments.kwarg:
        found.append(arguments.kwarg)
    return found


def names_in(node: ast.AST) -> set[str]:
    """All names that occur in a node."""
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def bound_names(target: ast.AST) -> set[str]:
    """The names that an assignment target binds."""
    return {
        inner.id
        for inner in ast.walk(target)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }


def decorator_names(module: PythonModule, node: FunctionNode | ast.ClassDef) -> set[str]:
    """The dotted names of a definition's decorators, calls included."""
    found = set()
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        found.add(module.qualified(target) or "")
    return found


_TEST_FOLDERS = frozenset("test tests testing __tests__ spec specs fixtures testdata".split())  # noqa: SIM905
_TEST_NAME = re.compile(r"(_test|\.test|\.spec)\.(py|go|rs|java|rb|[cm]?[jt]sx?)$")


def is_test_path(path: str) -> bool:
    """Whether a file belongs to a test suite, by the usual conventions of its path beneath the root."""
    *folders, name = path.split("/")
    return (
        name.startswith(("test_", "conftest"))
        or _TEST_NAME.search(name) is not None
        or not _TEST_FOLDERS.isdisjoint(folders)
    )
