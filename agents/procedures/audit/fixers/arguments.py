"""Fixers that add an argument to a call: time limits, filters of archives, flags of cookies."""

import ast

from agents.procedures.audit.fixers.edits import Edit, Fix, Target

_COOKIE = {"secure": "True", "httponly": "True", "samesite": '"Lax"'}


def added(target: Target, call: ast.Call, *arguments: str) -> Edit:
    """The edit that adds keyword arguments at the end of a call."""
    end = target.span(call)[1] - 1
    before = target.file.text[:end].rstrip()
    comma = "" if before.endswith((",", "(")) else ", "
    return end, end, comma + ", ".join(arguments)


def fix_timeout(target: Target) -> Fix | None:
    """A request gets a time limit (CWE-400)."""
    for call in target.calls():
        root = target.module.call_name(call).split(".")[0]
        if root in ("requests", "httpx", "urllib") and not _has(call, "timeout"):
            return target.fix("The request ends after 30 s.", added(target, call, "timeout=30"))
    return None


def fix_extractall(target: Target) -> Fix | None:
    """`extractall` of a tar archive refuses members outside of its folder (CWE-22)."""
    if "tarfile" not in target.module.imports.values():
        return None
    for call in target.calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr == "extractall":
            if not _has(call, "filter") and not _has(call, "members"):
                return target.fix(
                    "Members that leave the folder are refused.",
                    added(target, call, 'filter="data"'),
                )
    return None


def fix_cookie(target: Target) -> Fix | None:
    """`set_cookie` gets the flags that it lacks (CWE-614, CWE-1004)."""
    for call in target.calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr == "set_cookie":
            missing = [f"{name}={value}" for name, value in _COOKIE.items() if not _has(call, name)]
            off: list[Edit] = [
                target.replace(one.value, _COOKIE[one.arg])
                for one in call.keywords
                if one.arg in ("secure", "httponly")
                and isinstance(one.value, ast.Constant)
                and one.value.value is False
            ]
            edits = [*off, *([added(target, call, *missing)] if missing else [])]
            if edits:
                return target.fix("Scripts and plain connections do not get the cookie.", *edits)
    return None


def _has(call: ast.Call, name: str) -> bool:
    return any(one.arg in (name, None) for one in call.keywords)
