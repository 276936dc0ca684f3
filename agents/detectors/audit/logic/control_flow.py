"""Statements that never run, branches that do the same, results that some paths lose (CWE-561, CWE-394)."""

import ast
import itertools
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.python_module import (
    LOOPS,
    TERMINATORS,
    FunctionNode,
    PythonModule,
    blocks,
    decorator_names,
    is_test_path,
    own_nodes,
    shape,
    terminates,
)
from agents.detectors.rule_file import RuleEntry, RuleFile

RULES = RuleFile(__file__, "control_flow", entry=RuleEntry)


def check_control_flow(module: PythonModule) -> Iterator[Finding]:
    """Findings about the order of a module's statements."""
    for node in module.nodes:
        for block in blocks(node):
            yield from _unreachable(module, block)
        if isinstance(node, ast.If):
            yield from _branches(module, node)
        elif isinstance(node, ast.Try):
            yield from _handlers(module, node)
        elif isinstance(node, LOOPS):
            yield from _loop(module, node)
    for function in module.functions:
        yield from _missing_return(module, function)


def _unreachable(module: PythonModule, block: list[ast.stmt]) -> Iterator[Finding]:
    for statement, following in itertools.pairwise(block):
        ends = isinstance(statement, TERMINATORS) or (
            isinstance(statement, ast.If) and statement.orelse and terminates([statement])
        )
        endless = (
            isinstance(statement, ast.While)
            and isinstance(statement.test, ast.Constant)
            and bool(statement.test.value)
            and not any(isinstance(node, ast.Break) for node in ast.walk(statement))
        )
        if (ends or endless) and not _makes_generator(following):
            yield RULES["unreachable-code"].at(
                module.file,
                following.lineno,
                end_line=following.end_lineno,
            )
            return


def _makes_generator(statement: ast.stmt) -> bool:
    """`raise X; yield` makes a function a generator; `assert_never` and `raise` document."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield | ast.Constant):
        return True
    return isinstance(statement, ast.Raise)


def _branches(module: PythonModule, node: ast.If) -> Iterator[Finding]:
    parent = module.parent.get(node)
    if isinstance(parent, ast.If) and parent.orelse == [node]:
        return  # reported from the head of the chain
    tests: dict[str, int] = {}
    bodies: list[tuple[str, int]] = []
    current: ast.If | None = node
    while current is not None:
        test = shape(current.test)
        if test in tests and not any(isinstance(n, ast.Call) for n in ast.walk(current.test)):
            yield RULES["duplicate-condition"].at(
                module.file,
                current.lineno,
                f"Line {tests[test]} tests the same condition, so this branch never runs.",
            )
        tests.setdefault(test, current.lineno)
        bodies.append((_body_shape(current.body), current.body[0].lineno))
        rest = current.orelse
        current = rest[0] if len(rest) == 1 and isinstance(rest[0], ast.If) else None
        if rest and current is None:
            bodies.append((_body_shape(rest), rest[0].lineno))
            if len(bodies) == 2 and bodies[0][0] == bodies[1][0] and bodies[0][0]:
                yield RULES["duplicate-branch"].at(
                    module.file,
                    node.lineno,
                    end_line=rest[-1].end_lineno,
                )


def _body_shape(body: list[ast.stmt]) -> str:
    if all(isinstance(one, ast.Pass) for one in body):
        return ""
    return "\n".join(shape(one) for one in body)


_BROAD = frozenset(["Exception", "BaseException"])


def _handlers(module: PythonModule, node: ast.Try) -> Iterator[Finding]:
    broad: ast.ExceptHandler | None = None
    for handler in node.handlers:
        kinds = _handled(handler)
        if broad is not None:
            yield RULES["unreachable-handler"].at(
                module.file,
                handler.lineno,
                f"Line {broad.lineno} catches everything before, so this handler never runs.",
            )
        if not kinds or kinds & _BROAD:
            broad = handler
            if _does_nothing(handler.body) and not is_test_path(module.file.path):
                comment = "#" in module.file.quote(handler.lineno, handler.body[-1].end_lineno)
                yield RULES["swallowed-exception"].at(
                    module.file,
                    handler.lineno,
                    severity=Severity.LOW if comment else None,
                )


def _handled(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return set()
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {kind.id for kind in kinds if isinstance(kind, ast.Name)} or {"?"}


def _does_nothing(body: list[ast.stmt]) -> bool:
    return all(
        isinstance(one, ast.Pass | ast.Continue)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in body
    )


def _missing_return(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """A function that returns a value on some paths and falls off its end on another."""
    own = list(own_nodes(function))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own):
        return
    returns = [node for node in own if isinstance(node, ast.Return)]
    valued = [node for node in returns if node.value is not None and not _is_none(node.value)]
    if not valued or _never_falls_through(function.body, _never_returning(module)):
        return
    declared = function.returns
    optional = declared is not None and ("None" in shape(declared) or "Optional" in shape(declared))
    if optional or "overload" in str(decorator_names(module, function)):
        return
    if len(valued) < len(returns):
        return  # bare returns: None is one of its results
    last = function.body[-1]
    severity = Severity.HIGH if declared is not None else Severity.MEDIUM
    if declared is None and isinstance(last, LOOPS):
        severity = Severity.LOW  # a search that finds nothing
    if declared is None and isinstance(last, ast.If) and not last.orelse and len(valued) == 1:
        severity = Severity.LOW
    yield RULES["missing-return"].at(
        module.file,
        function.lineno,
        f"{function.name} returns a value on line {valued[0].lineno} and None where its end is reached.",
        severity=severity,
        confidence=0.7,
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _never_returning(module: PythonModule) -> set[str]:
    """Functions and methods of the module declared `NoReturn` or `Never`."""
    return {
        function.name
        for function in module.functions
        if function.returns is not None and shape(function.returns).endswith(("NoReturn", "Never"))
    }


def _never_falls_through(body: list[ast.stmt], never: set[str]) -> bool:
    """Whether control cannot pass the end of a block; unlike `terminates`, loops, `try` and `match` count."""
    work = [body]
    while work:
        block = work.pop()
        if terminates(block):
            continue
        last = block[-1] if block else None
        if isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and last.test.value:
            if any(isinstance(node, ast.Break) for node in ast.walk(last)):
                return False
        elif isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
            if shape(last.value.func).rsplit(".", 1)[-1] not in never:
                return False
        elif isinstance(last, ast.If) and last.orelse:
            work += [last.body, last.orelse]
        elif isinstance(last, ast.With | ast.AsyncWith):
            work.append(last.body)
        elif isinstance(last, ast.Try):
            if last.finalbody and terminates(last.finalbody):
                continue
            work += [last.orelse or last.body, *(handler.body for handler in last.handlers)]
        elif isinstance(last, ast.Match):
            # A type checker proves that the cases are all there are; that is not repeated here.
            work += [case.body for case in last.cases]
        elif isinstance(last, ast.For | ast.AsyncFor) and last.orelse:
            work.append(last.orelse)
        else:
            return False
    return True


def _loop(module: PythonModule, node: ast.For | ast.AsyncFor | ast.While) -> Iterator[Finding]:
    inner = [one for statement in node.body for one in (statement, *own_nodes(statement))]
    last = node.body[-1]
    continues = any(isinstance(one, ast.Continue) for one in inner)
    if isinstance(last, ast.If) and last.orelse and isinstance(node, ast.For) and not continues:
        # A search whose `else` belongs to the `for`: it decides on the first element alone.
        both = (last.body[-1], last.orelse[-1])
        if all(isinstance(one, ast.Return) and one.value is not None for one in both):
            constants = {
                shape(one.value) for one in both if isinstance(one, ast.Return) and one.value
            }
            if constants == {"True", "False"}:
                yield RULES["loop-runs-once"].at(
                    module.file,
                    both[1].lineno,
                    "The loop returns in its first pass: return after the loop.",
                )
    if isinstance(last, ast.Break | ast.Return) and not continues and len(node.body) > 1:
        if isinstance(node, ast.While) and not any(isinstance(one, ast.If) for one in node.body):
            yield RULES["loop-runs-once"].at(module.file, last.lineno, confidence=0.7)
    if isinstance(node, ast.While):
        yield from _endless(module, node, inner)


def _endless(module: PythonModule, node: ast.While, inner: list[ast.AST]) -> Iterator[Finding]:
    """A comparison of local names with constants, none of which the body binds or passes on."""
    test = node.test
    if not isinstance(test, ast.Compare) or any(
        not isinstance(one, ast.Name | ast.Constant) for one in (test.left, *test.comparators)
    ):
        return
    names = {one.id for one in (test.left, *test.comparators) if isinstance(one, ast.Name)}
    leaves = any(
        isinstance(one, ast.Break | ast.Return | ast.Raise | ast.Yield | ast.Await) for one in inner
    )
    function = module.function_of(node)
    if not names or leaves or function is None:
        return
    scopes = {
        name
        for one in ast.walk(function)
        if isinstance(one, ast.Global | ast.Nonlocal)
        for name in one.names
    }
    bound = {
        one.id for one in inner if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    if not names & (bound | scopes) and not _exits_by_call(inner):
        yield RULES["endless-loop"].at(module.file, node.lineno)


def _exits_by_call(inner: list[ast.AST]) -> bool:
    return any(
        isinstance(one, ast.Call)
        and shape(one.func).rsplit(".", 1)[-1] in ("exit", "_exit", "next")
        for one in inner
    )
