"""Fixers of missing checks: zero, the end of a sequence, shared defaults, encodings."""

import ast

from agents.detectors.audit.python_module import parameters, shape
from agents.procedures.audit.fixers.edits import Fix, Target


def fix_division(target: Target) -> Fix | None:
    """`a / b` becomes `(a / b if b else 0)` (CWE-369), where evaluating `b` twice does no harm."""
    for node in target.nodes():
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div | ast.FloorDiv):
            continue
        divisor = node.right
        calls = [inner for inner in ast.walk(divisor) if isinstance(inner, ast.Call | ast.Await)]
        if isinstance(divisor, ast.Constant):
            continue
        if any(
            shape(call.func) not in ("len", "sum") for call in calls if isinstance(call, ast.Call)
        ):
            return None
        test = target.source(divisor)
        if len(calls) == 1 and isinstance(divisor, ast.Call) and shape(divisor.func) == "len":
            test = target.source(divisor.args[0])
        whole = target.source(node)
        if "\n" in whole:
            return None
        zero = "0" if isinstance(node.op, ast.FloorDiv) else "0.0"
        choice = f"{whole} if {test} else {zero}"
        alone = isinstance(target.module.parent.get(node), ast.Return | ast.Assign)
        return target.fix(
            f"Without {test:.60} the result is {zero}; change it if another value is meant.",
            target.replace(node, choice if alone else f"({choice})"),
        )
    return None


def fix_off_by_one(target: Target) -> Fix | None:
    """`range(len(x) + 1)`, `<= len(x)` and `x[len(x)]` end at the last element (CWE-193)."""
    for node in target.nodes():
        if (
            (
                isinstance(node, ast.BinOp)
                and isinstance(node.op, ast.Add)
                and isinstance(node.left, ast.Call)
            )
            and shape(node.left.func) == "len"
            and shape(node.right) == "1"
        ):
            return target.fix(
                "The last index is len - 1.", target.replace(node, target.source(node.left))
            )
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.LtE):
            right = node.comparators[0]
            if isinstance(right, ast.Call) and shape(right.func) == "len" and len(node.ops) == 1:
                return target.fix(
                    "The last index is len - 1.",
                    (target.span(node.left)[1], target.span(right)[0], " < "),
                )
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Call):
            if shape(node.slice) == f"len({shape(node.value)})":
                return target.fix("The last index is -1.", target.replace(node.slice, "-1"))
    return None


def fix_mutable_default(target: Target) -> Fix | None:
    """A shared default becomes None, and the value is created in the function (CWE-1321)."""
    for node in target.nodes():
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        arguments = node.args
        plain = [*arguments.posonlyargs, *arguments.args]
        pairs = list(zip(plain[::-1], arguments.defaults[::-1], strict=False))
        pairs += [
            (a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d
        ]
        for argument, default in pairs:
            mutable = isinstance(default, ast.List | ast.Dict | ast.Set) or (
                isinstance(default, ast.Call) and shape(default.func) in ("list", "dict", "set")
            )
            if not mutable or not target.finding.line <= default.lineno <= target.finding.end_line:
                continue
            body = node.body
            first = body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and len(body) > 1
            ):
                first = body[1]
            if first.lineno == node.lineno or not parameters(node):
                return None
            margin = " " * first.col_offset
            start = target.offset(first.lineno, 0)
            if getattr(first, "decorator_list", None):
                start = target.offset(first.decorator_list[0].lineno, 0)  # type: ignore[attr-defined]
            lines = f"{margin}if {argument.arg} is None:\n{margin}    {argument.arg} = {target.source(default)}\n"
            edits = [target.replace(default, "None"), (start, start, lines)]
            annotation = argument.annotation
            if annotation is not None and "None" not in shape(annotation):
                edits.append(target.replace(annotation, f"{target.source(annotation)} | None"))
            return target.fix("Each call gets its own value.", *edits)
    return None


def fix_encoding(target: Target) -> Fix | None:
    """`open(path)` gets `encoding="utf-8"` (CWE-838)."""
    for call in target.calls():
        if target.module.call_name(call) == "open" and not any(
            k.arg == "encoding" for k in call.keywords
        ):
            end = target.span(call)[1] - 1
            before = target.file.text[:end].rstrip()
            comma = "" if before.endswith((",", "(")) else ", "
            return target.fix(
                "The text reads the same on all machines.", (end, end, f'{comma}encoding="utf-8"')
            )
    return None


def fix_empty_index(target: Target) -> Fix | None:
    """`x[0]` and `x[-1]` of what may be empty give None (CWE-129)."""
    for node in target.nodes():
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        if not isinstance(node.value, ast.Name) or shape(node.slice) not in ("0", "-1"):
            continue
        parent = target.module.parent.get(node)
        if not isinstance(parent, ast.Return | ast.Assign):
            return None  # what would use the None is not known
        return target.fix(
            "Without values the result is None; change it if another value is meant.",
            target.replace(node, f"{target.source(node)} if {node.value.id} else None"),
        )
    return None


def fix_next_default(target: Target) -> Fix | None:
    """`next(x)` of what may be empty gives None (CWE-754)."""
    for call in target.calls():
        if target.module.call_name(call) != "next" or len(call.args) != 1:
            continue
        start, end = target.span(call.args[0])
        given = target.file.text[start:end]
        # The place of a generator that is the only argument includes the parentheses of the call.
        alone = isinstance(call.args[0], ast.GeneratorExp) and end == target.span(call)[1]
        return target.fix(
            "Without values the result is None; change it if another value is meant.",
            (start, end, f"({given}, None)" if alone else f"{given}, None"),
        )
    return None


def fix_constant_operand(target: Target) -> Fix | None:
    """`x == a or b` with a constant `b` becomes `x in (a, b)` (CWE-571)."""
    for node in target.nodes():
        if not isinstance(node, ast.BoolOp) or not isinstance(node.op, ast.Or):
            continue
        first, *others = node.values
        if not isinstance(first, ast.Compare) or not isinstance(first.ops[0], ast.Eq):
            continue
        constant = all(isinstance(one, ast.Constant) and one.value for one in others)
        if len(first.ops) != 1 or not constant:
            continue
        values = ", ".join(target.source(one) for one in [first.comparators[0], *others])
        return target.fix(
            "Each value is compared.",
            target.replace(node, f"{target.source(first.left)} in ({values})"),
        )
    return None


def fix_reduction_default(target: Target) -> Fix | None:
    """`max(x)` and `min(x)` of what may be empty get a default (CWE-754)."""
    for call in target.calls():
        if target.module.call_name(call) in ("max", "min") and len(call.args) == 1:
            end = target.span(call)[1] - 1
            return target.fix(
                "Without values the result is None; change it if another value is meant.",
                (end, end, ", default=None"),
            )
    return None


def fix_wrong_or(target: Target) -> Fix | None:
    """`x != a or x != b` becomes `and` (CWE-571)."""
    for node in target.nodes():
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and len(node.values) == 2:
            left, right = node.values
            between = target.file.text[target.span(left)[1] : target.span(right)[0]]
            if between.strip() == "or" and isinstance(module_parent(target, node), ast.stmt):
                return target.fix(
                    "`or` of two inequalities is always true.",
                    (target.span(left)[1], target.span(right)[0], between.replace("or", "and")),
                )
    return None


def module_parent(target: Target, node: ast.AST) -> ast.AST | None:
    """The parent of a node in the module's tree."""
    return target.module.parent.get(node)
