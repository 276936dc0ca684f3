"""Statements without their effect: sums nobody keeps, parts of a duration, locks that stay held, old values.

`total + price` changes nothing; `.seconds` leaves the days of a duration out; a `return` between `acquire` and
`release` keeps the lock; after an `except` that goes on, a name has the value of an earlier round or none; a
limit that is tested by `>` before something is added is passed by one.
"""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.python_module import (
    FunctionNode,
    PythonModule,
    blocks,
    own_nodes,
    shape,
    terminates,
)
from agents.detectors.rule_file import RuleEntry, RuleFile

RULES = RuleFile(__file__, "lost_effects", entry=RuleEntry)

_LIMIT = re.compile(r"(?i)(^|[._])(max|maximum|limit|capacity|maxsize|max_\w+|\w+_limit|\w+_max)$")
_TIMES = re.compile(
    r"(?i)\b(now|utcnow|today|datetime|date|time|start\w*|end\w*|since|until|begin\w*|created\w*|issued|due|"
    r"finish\w*|updated\w*|expires\w*|\w+_at|\w+_(time|date))\b"
)
_TELLING = re.compile(
    r"(?i)(^|\.)(print|warn|warning|info|debug|exception|log|echo|secho|write)$|\blog(ger|ging)?\.error$"
)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)


def check_lost_effects(module: PythonModule) -> Iterator[Finding]:
    """Findings about values and effects that get lost."""
    yield from _discarded(module)
    yield from _parts_of_durations(module)
    for function in module.functions:
        yield from _held_locks(module, function)
        for node in (function, *own_nodes(function)):
            for block in blocks(node):
                yield from _after_except(module, function, block)
                yield from _passed_limits(module, block)


def _discarded(module: PythonModule) -> Iterator[Finding]:
    """`total + price` as a statement."""
    for node in module.of(ast.Expr):
        value = node.value
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, _ARITHMETIC):
            continue
        if not isinstance(value.left, ast.Name | ast.Attribute | ast.Subscript):
            continue
        if any(isinstance(one, ast.Try | ast.With) for one in module.ancestors(node)):
            continue  # tried whether it raises
        yield RULES["discarded-value"].at(
            module.file, node.lineno, f"{shape(value):.60} is computed and dropped: assign it."
        )


def _parts_of_durations(module: PythonModule) -> Iterator[Finding]:
    """`(end - start).seconds`, in a function that does not look at the days."""
    for node in module.of(ast.Attribute):
        if node.attr not in ("seconds", "microseconds") or not isinstance(node.ctx, ast.Load):
            continue
        value = node.value
        scope = module.function_of(node) or module.tree
        if isinstance(value, ast.Name):
            found = [
                one.value
                for one in own_nodes(scope)
                if isinstance(one, ast.Assign) and shape(one.targets[0]) == value.id
            ]
            value = found[0] if len(found) == 1 else value
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Sub):
            continue
        if not _TIMES.search(shape(value)):
            continue
        used = {one.attr for one in own_nodes(scope) if isinstance(one, ast.Attribute)}
        if used & {"days", "total_seconds"}:
            continue
        yield RULES["part-of-duration"].at(
            module.file,
            node.lineno,
            f".{node.attr} is what is left beside whole days and seconds: use total_seconds().",
        )


def _held_locks(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """`return` or `raise` between `lock.acquire()` and `lock.release()` without `finally`."""
    for block in [block for node in (function, *own_nodes(function)) for block in blocks(node)]:
        for number, statement in enumerate(block):
            lock = _called(statement, "acquire")
            if not lock:
                continue
            after = block[number + 1 :]
            ends = [index for index, one in enumerate(after) if _called(one, "release") == lock]
            if not ends:
                continue
            for one in after[: ends[0]]:
                leaving = _leaves_held(one, lock)
                if leaving is not None:
                    yield RULES["lock-not-released"].at(
                        module.file,
                        leaving.lineno,
                        f"{lock} stays held here: use `with`, or release it in a finally.",
                    )
                    break


def _called(statement: ast.AST, method: str) -> str:
    """What `statement` calls the method of; empty for anything else."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Await):
        value = value.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr == method:
            return shape(value.func.value)
    return ""


def _leaves_held(statement: ast.stmt, lock: str) -> ast.stmt | None:
    """The first `return` or `raise` within a statement before which the lock is not released."""
    if isinstance(statement, ast.Return | ast.Raise):
        return statement
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return None
    if isinstance(statement, ast.Try):
        if any(
            _called(one, "release") == lock for one in ast.walk(ast.Module(statement.finalbody, []))
        ):
            return None
        return None if statement.handlers else _leaves_in(statement.body, lock)
    for block in blocks(statement):
        found = _leaves_in(block, lock)
        if found is not None:
            return found
    return None


def _leaves_in(block: list[ast.stmt], lock: str) -> ast.stmt | None:
    for one in block:
        if _called(one, "release") == lock:
            return None
        found = _leaves_held(one, lock)
        if found is not None:
            return found
    return None


def _after_except(
    module: PythonModule, function: FunctionNode, block: list[ast.stmt]
) -> Iterator[Finding]:
    """`try: row = parse(line)`, `except ValueError: log()`, and then `use(row)`."""
    for number, statement in enumerate(block):
        if not isinstance(statement, ast.Try) or statement.finalbody or statement.orelse:
            continue
        if len(statement.body) != 1 or not isinstance(statement.body[0], ast.Assign):
            continue
        target = statement.body[0].targets[0]
        if not isinstance(target, ast.Name):
            continue
        open_ones = [one for one in statement.handlers if _only_tells(one)]
        if not open_ones or _bound_before(module, function, statement, target.id):
            continue
        used = _first_use(block[number + 1 :], target.id)
        if used is not None:
            yield RULES["used-after-except"].at(
                module.file,
                used.lineno,
                f"After the except in line {open_ones[0].lineno}, {target.id} has no value, or that of "
                "the round before: leave there, or give it one.",
            )


def _only_tells(handler: ast.ExceptHandler) -> bool:
    """Whether a handler does nothing but log: a call of something else may raise or end the program."""
    caught = "" if handler.type is None else shape(handler.type)
    if re.search(r"NameError|ImportError|ModuleNotFoundError", caught):
        return False
    return all(
        isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Call)
        and _TELLING.search(shape(one.value.func)) is not None
        for one in handler.body
    )


def _bound_before(
    module: PythonModule, function: FunctionNode, statement: ast.Try, name: str
) -> bool:
    """Whether a name has another binding that reaches the statement, or is not the function's own."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if name in {one.arg for one in every}:
        return True
    inside = set(ast.walk(statement))
    for one in own_nodes(function):
        if isinstance(one, ast.Global | ast.Nonlocal) and name in one.names:
            return True
        if isinstance(one, ast.Name) and one.id == name and one not in inside:
            if not isinstance(one.ctx, ast.Load):
                return True
    return False


def _first_use(statements: list[ast.stmt], name: str) -> ast.expr | None:
    for statement in statements:
        names = [one for one in ast.walk(statement) if isinstance(one, ast.Name) and one.id == name]
        if any(not isinstance(one.ctx, ast.Load) for one in names):
            return None
        if names:
            return min(names, key=lambda one: (one.lineno, one.col_offset))
        if isinstance(statement, ast.If | ast.Return | ast.Raise):
            return None  # what follows may depend on it
    return None


def _passed_limits(module: PythonModule, block: list[ast.stmt]) -> Iterator[Finding]:
    """`if len(items) > limit: raise …` before `items.append(…)`."""
    for number, statement in enumerate(block):
        if not isinstance(statement, ast.If) or statement.orelse or not terminates(statement.body):
            continue
        counted = _counted(statement.test)
        if not counted:
            continue
        for one in block[number + 1 :]:
            if _called(one, "append") == counted or _called(one, "add") == counted:
                yield RULES["limit-passed-by-one"].at(
                    module.file,
                    statement.lineno,
                    f"With {shape(statement.test):.60} one more than the limit is added: use >=.",
                )
                break


def _counted(test: ast.expr) -> str:
    """`items` in `len(items) > self.limit`."""
    if (
        not isinstance(test, ast.Compare)
        or len(test.ops) != 1
        or not isinstance(test.ops[0], ast.Gt)
    ):
        return ""
    left, right = test.left, test.comparators[0]
    if not isinstance(left, ast.Call) or shape(left.func) != "len" or len(left.args) != 1:
        return ""
    return shape(left.args[0]) if _LIMIT.search(shape(right)) else ""
