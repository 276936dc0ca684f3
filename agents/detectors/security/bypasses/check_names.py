"""Checks of who may do something, as Python programs name them.

A *check* is a function whose name says so (`is_admin`, `has_permission`, `verify_token`); a *guard* stands in
front of other functions: a hook that runs before every request, a middleware, the wrapper of a decorator.
"""

import ast
import re

from agents.detectors.audit.python_module import FunctionNode, PythonModule

_SUBJECT = (
    r"(auth\w*|admin\w*|allowed|permi\w+|permission\w*|access|role\w*|owner|login|logged_in|token|password|credential\w*|"
    r"signature|session|user|staff|superuser|scope\w*|api_?key|privilege\w*|right\w*)"
)
CHECK_NAME = re.compile(
    rf"^_*(is|has|have|check|verify|require[sd]?|ensure|validate|assert)_(\w+_)?{_SUBJECT}(_\w+)?$"
    r"|^_*(can|may)_(?!raise|be_|connect|fetch|parse|skip|reach|change_|fast|start|close|wait|send|match)\w+$"
    r"|^_*(authenticate|authori[sz]e|authenticated|authori[sz]ed|login_required|admin_required|is_valid_token)(_\w+)?$"
)
LOGIN = re.compile(r"^_*(log|sign)_?in(_\w+)?$")
_HOOK = re.compile(r"before_(app_)?request|middleware|before_serving|on_request")
RIGHT = re.compile(
    r"^(is_)?(admin|administrator|superuser|staff|authenticated|authori[sz]ed|logged_in)$|^is_root$"
    r"|^has_(perm|permission|access|role|right)s?$|^is_(allowed|permitted|owner)$"
)
CHECK_DECORATOR = re.compile(
    r"(?i)(login|auth|admin|permission|role|token|jwt|scope|fresh|staff|user|access|api_?key)\w*_?(required|needed)$|"
    r"^(require[sd]?|needs?|ensure)_?\w*(login|auth|admin|permission|role|token|user|scope|access)\w*$|"
    r"^(authenticated|protected|admin_only|permission_required|requires?)$"
)


def is_check(function: FunctionNode) -> bool:
    """Whether a function is a check by its name."""
    return CHECK_NAME.search(function.name) is not None


def is_guard(module: PythonModule, function: FunctionNode) -> bool:
    """Whether a function stands in front of others: a hook, a middleware, the wrapper of a decorator."""
    if any(_HOOK.search(ast.unparse(one)) for one in function.decorator_list):
        return True
    owner = module.class_of(function)
    if owner is not None and function.name in (
        "dispatch",
        "__call__",
        "process_request",
        "process_view",
    ):
        return bool(re.search(r"(?i)auth|login|permission|guard", owner.name))
    outer = module.function_of(function)
    return outer is not None and bool(
        CHECK_DECORATOR.search(outer.name) or CHECK_NAME.search(outer.name)
    )


def body_of(function: FunctionNode) -> list[ast.stmt]:
    """Its statements without the docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1:] if documented else function.body
