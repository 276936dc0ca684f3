"""`answers` and `reads`: what an endpoint answers, and a body that it reads by itself.

Of other bodies, and of parameters, the endpoint's own signature says what they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
JSON = "application/json"
EVENT_STREAM = "text/event-stream"
NDJSON = "application/x-ndjson"
FORM = "multipart/form-data"
_ANSWER_ATTRIBUTE, _BODY_ATTRIBUTE = "described_answer", "described_body"


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The answer of an endpoint that did what it was asked.

    Attributes:
        whole: type of the JSON value, or `str` or `bytes` for another media type; None for no body.
        media_type: of the whole answer.
        events: type of the data of each server-sent event, where it streams.
        lines: type of each line, where it streams lines of JSON.
        status: of the answer.
        also: further statuses that are no errors, and what they mean.
        error: type of the errors of the endpoint; None for that of its path's face.
    """

    whole: Any = None
    media_type: str = JSON
    events: Any = None
    lines: Any = None
    status: int = 200
    also: Mapping[int, str] = field(default_factory=dict)
    error: Any = None


@dataclass(frozen=True, slots=True)
class BodyForm:
    """A body that an endpoint reads by itself.

    Attributes:
        kind: type of the JSON value or of the form.
        media_type: of the body.
    """

    kind: Any
    media_type: str = JSON


def answers(whole: Any, **more: Any) -> Callable[[Endpoint], Endpoint]:
    """Declare what an endpoint answers, as `AnswerForm`; a test fails on a route that does not."""

    def declare(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _ANSWER_ATTRIBUTE, AnswerForm(whole, **more))
        return endpoint

    return declare


def reads(kind: Any, media_type: str = JSON) -> Callable[[Endpoint], Endpoint]:
    """Declare the body of an endpoint whose signature has none."""

    def declare(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _BODY_ATTRIBUTE, BodyForm(kind, media_type))
        return endpoint

    return declare


def answer_form(endpoint: Callable[..., Any]) -> AnswerForm | None:
    """What `answers` has declared."""
    return getattr(endpoint, _ANSWER_ATTRIBUTE, None)


def body_form(endpoint: Callable[..., Any]) -> BodyForm | None:
    """What `reads` has declared."""
    return getattr(endpoint, _BODY_ATTRIBUTE, None)
