"""Fixers that replace a literal: switches of security, addresses, secrets, comparisons with literals."""

import ast
import re

from agents.procedures.audit.fixers.edits import Edit, Fix, Target

_SWITCHES = {
    "verify": (False, "True"),
    "check_hostname": (False, "True"),
    "debug": (True, "False"),
    "DEBUG": (True, "False"),
    "httponly": (False, "True"),
    "secure": (False, "True"),
    "autoescape": (False, "True"),
    "SESSION_COOKIE_SECURE": (False, "True"),
    "SESSION_COOKIE_HTTPONLY": (False, "True"),
    "verify_signature": (False, "True"),
}


def fix_switch(target: Target) -> Fix | None:
    """`verify=False`, `debug=True` and their like take the safe value (CWE-295, CWE-489, CWE-614, CWE-347)."""
    for node in target.nodes():
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(node, ast.Call):
            pairs = [(keyword.arg or "", keyword.value) for keyword in node.keywords]
        elif isinstance(node, ast.Dict):
            pairs = [
                (str(key.value), value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            ]
        elif isinstance(node, ast.Assign):
            target_node = node.targets[0]
            name = getattr(target_node, "attr", getattr(target_node, "id", ""))
            if isinstance(target_node, ast.Subscript) and isinstance(
                target_node.slice, ast.Constant
            ):
                name = str(target_node.slice.value)
            pairs = [(name, node.value)]
        for name, value in pairs:
            bad, good = _SWITCHES.get(name, (None, ""))
            if isinstance(value, ast.Constant) and value.value is bad:
                return target.fix(f"{name} must be {good}.", target.replace(value, good))
    return None


def fix_bind(target: Target) -> Fix | None:
    """`0.0.0.0` becomes `127.0.0.1` (CWE-605): only this machine can connect."""
    for node in target.nodes():
        if isinstance(node, ast.Constant) and node.value in ("0.0.0.0", "::"):  # noqa: S104
            new = '"127.0.0.1"' if node.value != "::" else '"::1"'
            return target.fix("The server listens on this machine only.", target.replace(node, new))
    return None


def fix_hard_coded_secret(target: Target) -> Fix | None:
    """A secret in an assignment is read from the environment variable of its name (CWE-798)."""
    for node in target.nodes():
        name, value = "", None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            one = node.targets[0]
            if isinstance(one, ast.Name | ast.Attribute):
                name = one.id if isinstance(one, ast.Name) else one.attr
            elif isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant):
                name = str(one.slice.value)
            value = node.value
        elif isinstance(node, ast.keyword):
            name, value = node.arg or "", node.value
        if value is None or not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            continue
        variable = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).upper()
        if not variable or variable[0].isdigit():
            continue
        return target.fix(
            f"The secret is read from the environment variable {variable}; revoke the old one.",
            target.replace(value, f'os.environ["{variable}"]'),
            imports=["os"],
        )
    return None


def fix_none_comparison(target: Target) -> Fix | None:
    """`== None` becomes `is None`; `is` with another literal becomes `==` (CWE-597)."""
    for node in target.nodes():
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            continue
        operator, right = node.ops[0], node.comparators[0]
        is_none = isinstance(right, ast.Constant) and right.value is None
        words = {ast.Eq: "is", ast.NotEq: "is not"} if is_none else {ast.Is: "==", ast.IsNot: "!="}
        new = words.get(type(operator))
        if new is None or (
            not is_none and isinstance(right, ast.Constant) and right.value in (None, True, False)
        ):
            continue
        edit: Edit = (target.span(node.left)[1], target.span(right)[0], f" {new} ")
        if target.file.text[edit[0] : edit[1]].strip(" ") not in ("==", "!=", "is", "is not"):
            return None  # parentheses or comments between
        return target.fix("Identity is for None, equality for values.", edit)
    return None


def fix_bare_except(target: Target) -> Fix | None:
    """`except:` becomes `except Exception:` (CWE-396): Ctrl+C and exits pass."""
    for node in target.nodes():
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            start = target.span(node)[0]
            return target.fix(
                "KeyboardInterrupt and SystemExit are no longer caught.",
                (start, start + len("except"), "except Exception"),
            )
    return None


def fix_jwt_algorithms(target: Target) -> Fix | None:
    """The algorithm `none` leaves the list of a `jwt.decode` (CWE-347)."""
    for call in target.calls():
        for keyword in call.keywords:
            if keyword.arg != "algorithms" or not isinstance(keyword.value, ast.List):
                continue
            kept = [e for e in keyword.value.elts if str(getattr(e, "value", "")).lower() != "none"]
            if kept and len(kept) < len(keyword.value.elts):
                text = ", ".join(target.source(element) for element in kept)
                return target.fix(
                    "Unsigned tokens are refused.", target.replace(keyword.value, f"[{text}]")
                )
    return None


def fix_file_mode(target: Target) -> Fix | None:
    """`os.chmod` to everyone becomes the owner only (CWE-732)."""
    for call in target.calls():
        if target.module.call_name(call).endswith("chmod"):
            for argument in call.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, int):
                    mode = "0o700" if argument.value & 0o111 else "0o600"
                    return target.fix("Only the owner has access.", target.replace(argument, mode))
    return None
