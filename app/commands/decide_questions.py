"""The questions of `pravaha decide`: from its options, which take several words, and from a file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from engine.api.decisions import DecisionQuestion

ASKED = "pravaha.decide.questions"
"""Where a context keeps the questions of its options, in their order: option and words."""
_PREDICATE, _CHOICE, _SCORE = "--predicate", "--choice", "--score"
Option = tuple[str, list[str]]


class DecideCommand(TyperCommand):
    """Takes `--choice` and `--score` with as many words as follow, which click itself does not."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the questions apart and parse the other arguments."""
        rest, asked = divided(args)
        ctx.meta[ASKED] = asked
        return super().parse_args(ctx, rest)


def divided(args: Sequence[str]) -> tuple[list[str], list[Option]]:
    """The arguments without questions, and the questions.

    The words of a question end at the next option, or at `--`, behind which files stand.

    Raises:
        typer.BadParameter: a question has no words.
    """
    rest: list[str] = []
    asked: list[Option] = []
    at = 0
    while at < len(args):
        name, equals, value = args[at].partition("=")
        if args[at] == "--":
            return [*rest, *args[at:]], asked
        at += 1
        if name not in (_PREDICATE, _CHOICE, _SCORE):
            rest.append(args[at - 1])
            continue
        words = [value] if equals else []
        most = 1 if name == _PREDICATE else len(args)
        while at < len(args) and len(words) < most and not _is_option(args[at]):
            words.append(args[at])
            at += 1
        if not words:
            raise typer.BadParameter(f"{name} needs a question behind it")
        asked.append((name, words))
    return rest, asked


def _is_option(word: str) -> bool:
    """Whether a word begins an option; a negative number does not."""
    return word.startswith("-") and not word[1:2].isdigit() and word != "-"


def from_options(asked: Sequence[Option]) -> list["DecisionQuestion"]:
    """The questions of the options.

    Raises:
        typer.BadParameter: one has too few words.
        InvalidRequest: one is not a question, as `DecisionQuestion` says.
    """
    from engine.api.decisions import choice, predicate, score

    questions = []
    for name, (text, *words) in asked:
        if name == _PREDICATE:
            questions.append(predicate(text))
        elif len(words) < 2:
            raise typer.BadParameter(f"{name} {text!r} needs at least two answers behind it")
        elif name == _CHOICE:
            questions.append(choice(text, words))
        else:
            questions.append(score(text, _levels(text, words)))
    return questions


def _levels(text: str, words: list[str]) -> range | list[str]:
    """Two numbers are the ends of a scale; other words are its levels."""
    try:
        low, high = (int(word) for word in words)
    except ValueError:
        return words
    if low >= high:
        raise typer.BadParameter(
            f"--score {text!r}: the low end comes first, and {low} is not below {high}"
        )
    return range(low, high + 1)


def from_file(file: Path, read: Callable[[Path], str]) -> list["DecisionQuestion"]:
    """The questions of a JSON file: a list as in a body of `POST /v1/decisions`, or an object with one.

    Raises:
        InvalidRequest: it cannot be read, or holds no questions.
    """
    import orjson
    from pydantic import ValidationError

    from app.server.calls.decision_input import asked_question
    from app.server.wire.decisions_schemas import DecisionRequest
    from app.server.wire.errors import ApiError, from_validation
    from app.server.wire.fields import undeclared_fields
    from engine.api.errors import InvalidRequest

    try:
        data = orjson.loads(read(file))
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"{file} is not JSON: {error}.") from error
    questions = data.get("questions") if isinstance(data, dict) else data
    try:
        body = DecisionRequest.model_validate({"model": "-", "input": "-", "questions": questions})
        undeclared_fields(body, strict=False)
        return [asked_question(one, f"questions[{at}]") for at, one in enumerate(body.questions)]
    except ValidationError as error:
        raise InvalidRequest(f"{file}: {from_validation(error.errors()).detail}") from error
    except ApiError as error:
        raise InvalidRequest(f"{file}: {error.detail}") from error
