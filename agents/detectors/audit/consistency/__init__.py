"""Code, documentation and configuration that disagree."""

import ast
import difflib
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import FunctionNode, PythonModule, is_test_path, own_nodes
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_LOW, _MEDIUM, _HIGH = Severity.LOW, Severity.MEDIUM, Severity.HIGH
WRONG_CALL = Rule("wrong-call", _HIGH, "Call that does not fit the signature", cwe=628)
DOC_PARAMETER = Rule("docstring-parameter", _LOW, "Docstring names another parameter", cwe=1059)
DOC_NAME = Rule("documented-name", _MEDIUM, "Documented name does not exist", cwe=1059)
DOC_OPTION = Rule("documented-option", _MEDIUM, "Documented option does not exist", cwe=1059)
VERSION = Rule("version-mismatch", _MEDIUM, "Versions disagree", cwe=1059)
CONFIG_KEY = Rule("config-key", _MEDIUM, "Configuration key is missing", cwe=1059)
CONSTANT = Rule("constant-mismatch", _LOW, "One constant, two values", cwe=1059)
DOC_DEFAULT = Rule("documented-default", _MEDIUM, "Documented default is another", cwe=1059)
ENVIRONMENT = Rule("environment-variable", _LOW, "Documented variable is not read", cwe=1059)
RULES = (
    WRONG_CALL, DOC_PARAMETER, DOC_NAME, DOC_OPTION, VERSION, CONFIG_KEY, CONSTANT, DOC_DEFAULT, ENVIRONMENT,
)  # fmt: skip


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    modules = list(python_files(workspace, context))
    functions = _unique_functions(modules)
    for module in modules:
        yield from _calls(module, functions)
        for node in module.functions:
            yield from _docstring(module, node)
        yield from _settings(module, workspace)
    yield from _versions(workspace)
    yield from _constants([one for one in modules if not is_test_path(one.file.path)])
    yield from _documents(workspace, modules, context)


def _unique_functions(modules: list[PythonModule]) -> dict[str, tuple[PythonModule, FunctionNode]]:
    """Top-level functions whose name occurs once in the workspace."""
    found: dict[str, list[tuple[PythonModule, FunctionNode]]] = defaultdict(list)
    for module in modules:
        for node in module.functions:
            found[node.name].append((module, node))
    return {
        name: many[0]
        for name, many in found.items()
        if len(many) == 1
        and many[0][0].function_of(many[0][1]) is None
        and many[0][0].class_of(many[0][1]) is None
    }


def _calls(
    module: PythonModule, functions: dict[str, tuple[PythonModule, FunctionNode]]
) -> Iterator[Finding]:
    assigned = {
        target.id
        for node in module.of(ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in module.of(ast.Call):
        if not isinstance(call.func, ast.Name) or call.func.id in assigned:
            continue
        found = functions.get(call.func.id)
        if found is None:
            continue
        home, node = found
        imported = module.imports.get(call.func.id, "")
        here = home is module
        if not here and not imported.endswith(f".{node.name}"):
            continue
        if node.decorator_list or any(isinstance(one, ast.Starred) for one in call.args):
            continue
        if any(one.arg is None for one in call.keywords):
            continue
        problem = _mismatch(node, len(call.args), [str(one.arg) for one in call.keywords])
        if problem:
            where = "" if here else f" ({home.file.path}:{node.lineno})"
            yield WRONG_CALL.at(module.file, call.lineno, f"{node.name}{where} {problem}.")


def _mismatch(node: FunctionNode, given: int, keywords: list[str]) -> str:
    positional = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    only = [one.arg for one in node.args.kwonlyargs]
    if given > len(positional) and node.args.vararg is None:
        return f"takes {len(positional)} positional arguments, not {given}"
    unknown = [one for one in keywords if one not in (*positional, *only)]
    if unknown and node.args.kwarg is None:
        return f"has no parameter {unknown[0]}"
    required = positional[: len(positional) - len(node.args.defaults)]
    missing = [one for one in required[given:] if one not in keywords]
    missing += [
        one
        for one, default in zip(only, node.args.kw_defaults, strict=True)
        if default is None and one not in keywords
    ]
    return f"misses {missing[0]}" if missing else ""


_GOOGLE = re.compile(r"^\s*(?:Args|Arguments|Parameters):\s*\n((?:(?:\s{2,}.*)?\n)+)", re.MULTILINE)
_SPHINX = re.compile(r":param\s+(?:[\w\[\], |.]+\s+)?(\*{0,2}\w+):")
_NUMPY = re.compile(r"^\s*Parameters\n\s*-{3,}\n([\s\S]+?)(?:\n\s*\w+\n\s*-{3,}|\Z)", re.MULTILINE)
_DEFAULT = re.compile(r"\b[Dd]efaults?\s*(?:to|is|:|=)\s*[`'\"]?(-?[\w.]+)")


def _documented(text: str) -> dict[str, str]:
    """Parameters that a docstring describes, with their descriptions."""
    found = {
        match[1]: text[match.end() : match.end() + 200].split("\n:")[0]
        for match in _SPHINX.finditer(text)
    }
    if match := _GOOGLE.search(f"{text}\n"):
        lines = [one for one in match[1].split("\n") if one.strip()]
        margin = min((len(one) - len(one.lstrip()) for one in lines), default=0)
        last = ""
        for line in lines:
            entry = re.match(
                rf"\s{{{margin}}}(\*{{0,2}}\w+(?:,\s*\*{{0,2}}\w+)*)\s*(?:\([^)]*\))?:\s?(.*)", line
            )
            if entry:
                for last in re.split(r",\s*", entry[1]):
                    found[last] = entry[2]
            elif last:
                found[last] += " " + line.strip()
    elif match := _NUMPY.search(text):
        for entry in re.finditer(r"^[ \t]*(\*{0,2}\w+)\s*:\s*(\S.*)$", match[1], re.MULTILINE):
            found[entry[1]] = entry[2]
    return found


def _docstring(module: PythonModule, node: FunctionNode) -> Iterator[Finding]:
    text = ast.get_docstring(node)
    documented = _documented(text) if text else {}
    if not documented:
        return
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    names = {one.arg for one in arguments}
    starred = [one.arg for one in (node.args.vararg, node.args.kwarg) if one]
    for name in documented:
        plain = name.lstrip("*")
        if plain not in names and plain not in starred and node.args.kwarg is None:
            yield DOC_PARAMETER.at(
                module.file,
                _line_of_parameter(module, node, plain),
                f"The docstring of {node.name} describes {plain}, which is no parameter.",
            )
    defaults = dict(zip([one.arg for one in arguments[: len(node.args.posonlyargs) + len(node.args.args)]][
        len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults) :], node.args.defaults, strict=True))  # fmt: skip
    defaults |= {
        a.arg: d for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d
    }
    for name, description in documented.items():
        default, match = defaults.get(name), _DEFAULT.search(description)
        if (
            match
            and isinstance(default, ast.Constant)
            and isinstance(default.value, int | float | str | bool | None)
        ):
            told = match[1].rstrip(".")
            if (
                told != str(default.value)
                and told.lower() != str(default.value).lower()
                and _number(told) != _number(str(default.value))
            ):
                text = f"The default of {name} is {default.value!r}, not {told}."
                yield DOC_DEFAULT.at(module.file, node.lineno, text)


def _line_of_parameter(module: PythonModule, node: FunctionNode, name: str) -> int:
    """The line of the docstring that describes a parameter."""
    first = node.body[0]
    for number in range(first.lineno, (first.end_lineno or first.lineno) + 1):
        if re.search(
            rf"(^|:param\s[^:]*)\s*\*{{0,2}}{re.escape(name)}\b\s*[:(]",
            module.file.lines[number - 1],
        ):
            return number
    return first.lineno


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_LOADED = re.compile(
    r"(safe_load|yaml\.load|json\.load|tomllib\.load|toml\.load|json\.loads|tomllib\.loads|safe_load_all)\("
)


def _settings(module: PythonModule, workspace: Workspace) -> Iterator[Finding]:
    """Keys that code reads of a settings file which has others of those keys, but not these."""
    if is_test_path(module.file.path) or not _LOADED.search(module.file.text):
        return
    for function in module.functions:
        loaded = {
            target.id
            for node in own_nodes(function)
            if isinstance(node, ast.Assign) and _LOADED.search(ast.unparse(node.value))
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        read = [
            (node.slice.value, node.lineno)
            for node in own_nodes(function)
            if isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
            and node.value.id in loaded
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ]
        keys = {key for key, _ in read}
        for file in workspace.of("yaml", "json", "toml"):
            own = _top_keys(file) if len(keys) > 1 else frozenset()
            shared = keys & own
            if not shared or len(shared) * 2 < len(keys) or shared == keys:
                continue
            for key, line in read:
                if key not in own:
                    near = difflib.get_close_matches(key, own, 1, 0.6)
                    hint = f"; it has {near[0]}" if near else ""
                    yield CONFIG_KEY.at(module.file, line, f"{file.path} has no key {key}{hint}.")
            break


def _top_keys(file: SourceFile) -> frozenset[str]:
    if file.language == "toml":
        return frozenset(re.findall(r"(?m)^\[?([\w-]+)\]?\s*(?:=|$)", file.text))
    if file.language == "json":
        return frozenset(re.findall(r"(?m)^(?:\{|  |    |\t)?\s{0,4}\"([\w-]+)\"\s*:", file.text))
    return frozenset(re.findall(r"(?m)^([\w-]+)\s*:", file.text))


def _versions(workspace: Workspace) -> Iterator[Finding]:
    project = workspace.get("pyproject.toml")
    version = ""
    if project is not None:
        try:
            data = tomllib.loads(project.text)
            table = data.get("project")
            version = str(table.get("version") or "") if isinstance(table, dict) else ""
        except (tomllib.TOMLDecodeError, RecursionError, ValueError):
            return
    if not version:
        package = workspace.get("package.json")
        match = (
            None
            if package is None
            else re.search(r'"version"\s*:\s*"([\d.]+[\w.-]*)"', package.text)
        )
        version = match[1] if match else ""
    if not re.match(r"\d+\.\d+", version):
        return
    for file in workspace.of("python"):
        match = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", file.text, re.MULTILINE)
        if match and match[1] != version:
            at = file.text.count("\n", 0, match.start()) + 1
            yield VERSION.at(
                file, at, f"__version__ is {match[1]}; the project's version is {version}."
            )
    for file in workspace.of("markdown", "rst"):
        if re.match(r"(CHANGELOG|HISTORY|NEWS|CHANGES)", file.path.rsplit("/", 1)[-1], re.I):
            continue
        for number, line in enumerate(file.lines, 1):
            match = re.search(
                r"\b(?:current version|version|release)\s*(?:is|:)?\s*\**v?(\d+\.\d+\.\d+)\b",
                line,
                re.I,
            )
            if match and match[1] != version and match[1].count(".") == version.count("."):
                yield VERSION.at(
                    file, number, f"The text says {match[1]}; the project's version is {version}."
                )


def _constants(modules: list[PythonModule]) -> Iterator[Finding]:
    found: dict[str, list[tuple[PythonModule, ast.Assign, object]]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if (
                isinstance(node, ast.Assign)
                and len(node.targets) == 1
                and isinstance(node.targets[0], ast.Name)
            ):
                name = node.targets[0].id
                if re.fullmatch(r"[A-Z][A-Z0-9_]{4,}", name) and isinstance(
                    node.value, ast.Constant
                ):
                    if isinstance(node.value.value, int | float | str) and not isinstance(
                        node.value.value, bool
                    ):
                        found[name].append((module, node, node.value.value))
    for name, many in found.items():
        if (
            len({repr(value) for _, _, value in many}) > 1
            and len({one.file.path for one, _, _ in many}) == 2
        ):
            first, (module, node, value) = many[0], many[-1]
            text = f"{name} is {value!r} here and {first[2]!r} in {first[0].file.path}."
            yield CONSTANT.at(module.file, node.lineno, text)


_CODE = re.compile(r"`([^`\n]+)`")


def _documents(
    workspace: Workspace, modules: list[PythonModule], context: DetectorContext
) -> Iterator[Finding]:
    if not modules:
        return
    names = {node.name for module in modules for node in module.functions}
    names |= {node.name for module in modules for node in module.of(ast.ClassDef)}
    code = "\n".join(module.file.text for module in modules)
    options = set(re.findall(r"['\"](--[a-z][\w-]+)['\"]", code))
    typer = "typer" in code or "click" in code
    variables = set(re.findall(r"['\"]([A-Z][A-Z0-9_]{3,})['\"]", code))
    prefix = re.findall(r"env_prefix\s*=\s*['\"]([A-Z_]+)", code)
    others = {file.text for file in workspace if file.language not in ("markdown", "rst", "python")}
    elsewhere = "\n".join(others)
    for file in workspace.of("markdown", "rst"):
        context.check_cancelled()
        if re.match(r"(CHANGELOG|HISTORY|NEWS)", file.path.rsplit("/", 1)[-1], re.I):
            continue
        yield from _document(
            file, names, options, variables, code, elsewhere, typer=typer, prefix=bool(prefix)
        )


def _document(
    file: SourceFile,
    names: set[str],
    options: set[str],
    variables: set[str],
    code: str,
    elsewhere: str,
    *,
    typer: bool,
    prefix: bool,
) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        for written in _CODE.findall(line):
            called = re.fullmatch(r"([a-z_][a-z0-9_]{3,})\(.*\)", written)
            if (
                called
                and called[1] not in names
                and not re.search(rf"\b{called[1]}\b", code + elsewhere)
            ):
                yield DOC_NAME.at(file, number, f"There is no function {called[1]} in this code.")
            option = re.fullmatch(r"(--[a-z][\w-]+)(?:[ =].*)?", written)
            if option and options and option[1] not in options:
                flag = option[1].removeprefix("--").removeprefix("no-").replace("-", "_")
                if (
                    not (typer and re.search(rf"\b{flag}\b", code))
                    and option[1] not in elsewhere + code
                ):
                    yield DOC_OPTION.at(
                        file, number, f"There is no option {option[1]} in this code."
                    )
            variable = re.fullmatch(r"\$?([A-Z][A-Z0-9]*_[A-Z0-9_]{2,})(?:=.*)?", written)
            if variable and variables and not prefix and variable[1] not in code + elsewhere:
                yield ENVIRONMENT.at(file, number, f"{variable[1]} is not read anywhere.")


CONSISTENCY = Detector(
    "consistency",
    "Compares calls with signatures, docstrings and documents with code, and versions with each other.",
    _detect,
    RULES,
)
