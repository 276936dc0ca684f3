"""`Defines`: the code defines what was asked, with its signature, and does something. Costs microseconds."""

import ast

from agents.width.candidate import Outcome
from agents.width.signature import Definition, Signature, definition_in, parameters_of


class Defines:
    """Fails if a name is missing, has other parameters, or its body is a stub."""

    name = "defines"
    decides = False

    def __init__(self, *signatures: Signature) -> None:
        self._signatures = signatures

    async def judge(self, code: str) -> Outcome:
        """See `Check`."""
        tree = ast.parse(code)
        problems = [problem for one in self._signatures if (problem := _problem(tree, one))]
        share = 1 - len(problems) / max(1, len(self._signatures))
        if problems:
            return Outcome(self.name, False, problems[0], share)
        shown = ", ".join(one.shown() for one in self._signatures)
        return Outcome(self.name, True, f"It defines {shown}.", 1.0)


def _problem(tree: ast.Module, wanted: Signature) -> str:
    node = definition_in(tree, wanted.name)
    if node is None:
        return f"It does not define {wanted.shown()}."
    if wanted.is_class:
        return "" if isinstance(node, ast.ClassDef) else f"{wanted.name} is no class."
    if isinstance(node, ast.ClassDef):
        return f"{wanted.name} is a class, not a function."
    if wanted.is_async != isinstance(node, ast.AsyncFunctionDef):
        return f"It must be {wanted.shown()}."
    if wanted.parameters is not None:
        found = parameters_of(node)
        if found[: len(wanted.parameters)] != wanted.parameters or not _optional(
            node, len(found) - len(wanted.parameters)
        ):
            return f"It must be {wanted.shown()}, not {Signature.of(node, wanted.name).shown()}."
    return f"{wanted.name} is left empty." if _is_stub(node) else ""


def _optional(node: ast.FunctionDef | ast.AsyncFunctionDef, more: int) -> bool:
    """Whether the last parameters, which were not asked for, may be left out."""
    if more <= 0:
        return True
    given = node.args
    if given.kwonlyargs:
        return all(one is not None for one in given.kw_defaults)
    return len(given.defaults) >= more - (given.vararg is not None) - (given.kwarg is not None)


def _is_stub(node: Definition) -> bool:
    """Whether the body only documents, passes, or says that it is not implemented."""
    for one in node.body:
        if isinstance(one, ast.Pass):
            continue
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            continue
        if isinstance(one, ast.Raise) and "NotImplemented" in ast.dump(one):
            continue
        return False
    return True
