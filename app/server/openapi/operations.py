"""`Operation`: one method of one path, as its route and its endpoint declare it."""

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from app.server.middleware.auth import RouteScope, scope_of, walk_routes
from app.server.wire import anthropic_errors, ollama_errors
from app.server.wire.answers.errors import AnthropicErrorAnswer, ErrorAnswer, OllamaErrorAnswer
from app.server.wire.body import Body
from app.server.wire.described import AnswerForm, BodyForm, answer_form, body_form


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    Attributes:
        id: unique in the document.
        method: in capitals.
        path: with its parameters in braces.
        scope: that its caller needs; a test fails on a route without one.
        body: that it reads, if it reads one.
        answer: that it gives.
        error: type of its errors.
        summary: one line.
        description: the rest of what its endpoint says; may be empty.
        group: name of the module of its endpoint.
        route: for its parameters.
    """

    id: str
    method: str
    path: str
    scope: RouteScope | None
    body: BodyForm | None
    answer: AnswerForm
    error: Any
    summary: str
    description: str
    group: str
    route: APIRoute

    @property
    def body_class(self) -> type[Body] | None:
        """The class of its JSON body, which is the table of its fields."""
        kind = None if self.body is None else self.body.kind
        return kind if isinstance(kind, type) and issubclass(kind, Body) else None


def operations(routes: Iterable[BaseRoute]) -> list[Operation]:
    """The operations of routes, but for HEAD, which is GET without a body."""
    found = [
        (method, route)
        for route in walk_routes(routes)
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in sorted(set(route.methods or ()) - {"HEAD"})
    ]
    names = Counter(route.name for _, route in found)
    return [_operation(method, route, is_only=names[route.name] == 1) for method, route in found]


def groups(found: Sequence[Operation]) -> dict[str, str]:
    """The groups of operations in their order, with what the modules of their endpoints are."""
    return {one.group: _first_line(sys.modules[one.route.endpoint.__module__]) for one in found}


def _operation(method: str, route: APIRoute, *, is_only: bool) -> Operation:
    endpoint = route.endpoint
    answer = answer_form(endpoint) or AnswerForm()
    text = inspect.getdoc(endpoint) or ""
    summary, _, description = text.partition("\n")
    slug = re.sub(r"[^a-zA-Z0-9]+", "_", route.path_format).strip("_")
    return Operation(
        id=route.name if is_only else f"{method.lower()}_{slug}",
        method=method,
        path=route.path_format,
        scope=scope_of(route),
        body=_body(route),
        answer=answer,
        error=answer.error or _error(route.path_format),
        summary=summary.strip(),
        description=description.strip(),
        group=endpoint.__module__.rpartition(".")[2],
        route=route,
    )


def _body(route: APIRoute) -> BodyForm | None:
    if route.body_field is None:
        return body_form(route.endpoint)
    kind: Any = route.body_field.field_info.annotation
    return BodyForm(kind)


def _error(path: str) -> type:
    scope = {"path": path, "headers": []}
    if ollama_errors.is_read_by(scope):
        return OllamaErrorAnswer
    return AnthropicErrorAnswer if anthropic_errors.is_read_by(scope) else ErrorAnswer


def _first_line(module: Any) -> str:
    return (inspect.getdoc(module) or "").partition("\n")[0]
