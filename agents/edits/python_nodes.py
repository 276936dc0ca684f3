"""What the statements of a Python program are: definitions, heads, placeholders, names. Pure functions."""

import ast
import copy
from collections.abc import Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def definitions(body: Sequence[ast.stmt]) -> Iterator[Definition]:
    """The functions and classes of a body, those within `if`, `try` and `with` too."""
    for node in body:
        if isinstance(node, DEFINITION):
            yield node
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for name in ("body", "orelse", "finalbody"):
                yield from definitions(getattr(node, name, []))
            for handler in getattr(node, "handlers", []):
                yield from definitions(handler.body)


def first_row(node: ast.stmt) -> int:
    """The index of the first line of a statement, with its decorators."""
    return min([node.lineno, *(one.lineno for one in _decorators(node))]) - 1


def column(node: ast.stmt) -> int:
    """The offset in bytes of a statement, or of its first decorator."""
    return next((one.col_offset for one in _decorators(node)), node.col_offset)


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, DEFINITION) else []


def header_end(node: ast.ClassDef) -> int:
    """The number of the line that ends with the colon of a class."""
    given: list[ast.expr] = [*node.bases, *(each.value for each in node.keywords)]
    last = max([node.lineno, *(each.end_lineno or each.lineno for each in given)])
    return min(last, first_row(node.body[0])) if node.body else last


def body_row(node: Function) -> int:
    """The index of the first line of a function's body."""
    return first_row(node.body[0])


def head_end(node: Function, lines: Sequence[str]) -> int:
    """The number of the line that ends with the colon of a function whose body is below it."""
    row = body_row(node)
    while row > node.lineno and (not lines[row - 1].strip() or lines[row - 1].lstrip()[0] == "#"):
        row -= 1
    return row


def annotations(node: Function) -> list[ast.expr]:
    """The annotations of the arguments and the result."""
    found = [each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg)]
    return [one for one in (*found, node.returns) if one is not None]


def plain_head(node: Function) -> str:
    """Kind and arguments of a function, without annotations."""
    arguments = copy.deepcopy(node.args)
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    return f"{type(node).__name__} {ast.dump(arguments)}"


def is_method(node: Function) -> bool:
    """Whether the first argument is `self` or `cls`."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    return bool(arguments) and arguments[0].arg in ("self", "cls")


def is_ellipsis(node: ast.stmt) -> bool:
    """Whether a statement is `...`."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and node.value.value is ...
    )


def is_placeholder(node: Definition) -> bool:
    """Whether the body is `...` or `pass`, perhaps below a docstring."""
    text = ast.get_docstring(node, clean=False)
    body = node.body if text is None else node.body[1:]
    return all(isinstance(one, ast.Pass) or is_ellipsis(one) for one in body)


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements of a tree."""
    return (each for each in ast.walk(node) if isinstance(each, ast.stmt))


def is_main_guard(node: ast.stmt) -> bool:
    """Whether a statement is `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and "__name__" in names_in(node.test)


def assigned(node: ast.stmt) -> str | None:
    """The name that a statement assigns, if it is only one."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target: ast.expr = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


def names_in(node: ast.AST) -> set[str]:
    """The names that code uses, those in annotations that are texts too."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and len(each.value) < 100:
            names |= {word for word in _words(each.value) if word.isidentifier()}
    return names


def _words(text: str) -> list[str]:
    return "".join(one if one.isalnum() or one == "_" else " " for one in text).split()


def dumps(nodes: Sequence[ast.AST]) -> list[str]:
    """The syntax trees as texts."""
    return [ast.dump(node) for node in nodes]
