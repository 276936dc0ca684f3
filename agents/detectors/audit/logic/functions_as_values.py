"""Functions where their results are meant: methods that are tested and not called, wrappers that are not used."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.python_module import FunctionNode, PythonModule
from agents.detectors.rule_file import RuleEntry, RuleFile

RULES = RuleFile(__file__, "functions_as_values", entry=RuleEntry)

_QUESTION = re.compile(r"^(is|has|can|may|should|needs|was|are)_\w+$")
_PROPERTY = re.compile(
    r"property|cached|attribute|setter|getter|descriptor|field|classproperty|reify", re.I
)


def check_functions_as_values(module: PythonModule) -> Iterator[Finding]:
    """Findings about functions that are not called where they should be."""
    yield from _tested_methods(module)
    for function in module.functions:
        yield from _unused_wrapper(module, function)


def _tested_methods(module: PythonModule) -> Iterator[Finding]:
    """`if user.is_admin:` where the module defines `is_admin` as a method: a method is always true."""
    methods: set[str] = set()
    others: set[str] = set()
    for function in module.functions:
        if module.class_of(function) is None or not _QUESTION.match(function.name):
            continue
        decorators = " ".join(ast.unparse(one) for one in function.decorator_list)
        arguments = function.args
        only_self = len(arguments.posonlyargs + arguments.args) == 1 and not arguments.kwonlyargs
        asks = only_self and not _PROPERTY.search(decorators)
        (methods if asks else others).add(function.name)
    targets = [one for node in module.of(ast.Assign) for one in node.targets]
    targets += [node.target for node in module.of(ast.AnnAssign)]
    for target in targets:
        name = target.attr if isinstance(target, ast.Attribute) else ""
        others.add(target.id if isinstance(target, ast.Name) else name)
    methods -= others
    for attribute in module.of(ast.Attribute) if methods else ():
        if attribute.attr in methods and _is_tested(module, attribute):
            yield RULES["tested-method"].at(
                module.file,
                attribute.lineno,
                f"{attribute.attr} is a method, which is always true: call it.",
            )


def _is_tested(module: PythonModule, node: ast.expr) -> bool:
    parent = module.parent.get(node)
    while isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    ):
        if isinstance(parent, ast.UnaryOp):
            return True
        node, parent = parent, module.parent.get(parent)
    return isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert) and parent.test is node


def _unused_wrapper(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """A decorator that makes a wrapper and returns the function itself."""
    parameters = function.args.args
    last = function.body[-1]
    if (
        len(parameters) != 1
        or not isinstance(last, ast.Return)
        or not isinstance(last.value, ast.Name)
    ):
        return
    if last.value.id != parameters[0].arg:
        return
    inner = [
        one for one in function.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for one in inner:
        used = any(
            isinstance(node, ast.Name) and node.id == one.name for node in ast.walk(function)
        )
        calls = any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == parameters[0].arg
            for node in ast.walk(one)
        )
        if calls and not used and not any(_keeps(each) for each in one.decorator_list):
            yield RULES["unused-wrapper"].at(
                module.file,
                last.lineno,
                f"{function.name} returns {last.value.id} and not {one.name}, which does the work.",
            )


def _keeps(decorator: ast.expr) -> bool:
    """Whether a decorator may register the wrapper elsewhere; `functools.wraps` does not."""
    return not re.search(r"(^|\.)wraps\(", ast.unparse(decorator))
