"""The routes that a workspace serves: of Python and JavaScript frameworks, Go's muxes, and OpenAPI documents."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from agents.detectors.audit.python_module import is_test_path, module_of
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_SCRIPT = re.compile(
    r"\b(?:app|router|server|fastify|api|\w+Router|routes|r|mux|e|g|group)\.(get|post|put|patch|delete|GET|POST|PUT|PATCH|DELETE|Get|Post|Put|Patch|Delete)"
    r"\(\s*['\"`](/[^'\"`]*)"
)
_HANDLE = re.compile(
    r"\b(?:HandleFunc|Handle)\(\s*\"(?:(GET|POST|PUT|PATCH|DELETE)\s+)?(/[^\"]*)\""
)
_RUST = re.compile(r"#\[(get|post|put|patch|delete)\(\"(/[^\"]*)\"|\.route\(\s*\"(/[^\"]*)\"")
_MAX_YAML = 300_000


@dataclass(frozen=True, slots=True)
class Route:
    """A served path, its parameters written `{}`.

    Attributes:
        method: upper-case, or `*` for any.
        path: with `/`, without query.
        bounds: largest values and lengths that its parameters may have.
    """

    method: str
    path: str
    bounds: frozenset[int] = frozenset()


def plain_path(path: str) -> str:
    """A path with its parameters written `{}`, without query and final slash."""
    path = path.partition("?")[0].partition("#")[0]
    path = re.sub(r"<[^>]*>|\{[^}]*\}|(?<=/):\w+", "{}", path)
    return path.rstrip("/") or "/"


def served_routes(workspace: Workspace) -> list[Route]:
    """All routes outside of tests."""
    found: list[Route] = []
    for file in workspace:
        if is_test_path(file.path):
            continue
        if file.language == "python":
            found += _python(file)
        elif file.language in ("javascript", "typescript", "tsx", "go"):
            found += [Route(m[1].upper(), plain_path(m[2])) for m in _SCRIPT.finditer(file.text)]
            found += [Route(m[1] or "*", plain_path(m[2])) for m in _HANDLE.finditer(file.text)]
        elif file.language == "rust":
            found += [
                Route((m[1] or "*").upper(), plain_path(m[2] or m[3]))
                for m in _RUST.finditer(file.text)
            ]
        elif file.language in ("yaml", "json") and re.search(
            r"[\"']?(openapi|swagger)[\"']?\s*:", file.text[:4_000]
        ):
            found += _openapi(file)
    return found


def _python(file: SourceFile) -> Iterator[Route]:
    module = module_of(file)
    for function in module.functions if module is not None else ():
        for one in function.decorator_list:
            if (
                not isinstance(one, ast.Call)
                or not isinstance(one.func, ast.Attribute)
                or not one.args
            ):
                continue
            first = one.args[0]
            if (
                not isinstance(first, ast.Constant)
                or not isinstance(first.value, str)
                or not first.value.startswith("/")
            ):
                continue
            bounds = frozenset(
                int(number) for number in re.findall(r"\ble=(\d+)", ast.unparse(function.args))
            )
            name = one.func.attr.upper()
            if name in METHODS:
                yield Route(name, plain_path(first.value), bounds)
            elif name in ("ROUTE", "API_ROUTE", "ADD_URL_RULE"):
                listed = next(
                    (ast.unparse(key.value) for key in one.keywords if key.arg == "methods"),
                    "'GET'",
                )
                yield from (
                    Route(method, plain_path(first.value), bounds)
                    for method in METHODS
                    if f"'{method}'" in listed
                )


def _openapi(file: SourceFile) -> Iterator[Route]:
    if len(file.data) > _MAX_YAML:
        return
    try:
        data = yaml.load(file.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError):
        return
    paths = data.get("paths") if isinstance(data, dict) else None
    for path, item in paths.items() if isinstance(paths, dict) else ():
        for method, operation in item.items() if isinstance(item, dict) else ():
            if str(method).upper() in METHODS:
                yield Route(str(method).upper(), plain_path(str(path)), _bounds(operation))


def _bounds(operation: object) -> frozenset[int]:
    parameters = operation.get("parameters") if isinstance(operation, dict) else None
    found: set[int] = set()
    for one in parameters if isinstance(parameters, list) else ():
        schema = one.get("schema") if isinstance(one, dict) else None
        for name in ("maximum", "maxLength", "maxItems"):
            value = schema.get(name) if isinstance(schema, dict) else None
            if isinstance(value, int):
                found.add(value)
    return frozenset(found)
