"""`pravaha decide`: probabilities of the answers to questions about texts, for people and scripts."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.decide_questions import ASKED, from_file, from_options
from app.commands.outcome import one_sentence_errors
from app.commands.setting_options import refuse_remote_contradictions, setting_options
from engine.api.decisions import MARGIN, MIN_LABEL_MASS

if TYPE_CHECKING:
    from app.runtime.opening import OpenClient
    from engine.api.decisions import DecisionAnswer, DecisionQuestion, Decisions

EXIT_FALSE, EXIT_UNDECIDED = 3, 4
"""Beside 0: a predicate is false; the model abstained or would say something else."""
_STDIN = "-"


@dataclass(frozen=True, slots=True)
class _Text:
    """A text to decide on; `name` is None for the only one."""

    name: str | None
    text: str


@setting_options("engine", "remote")
def decide(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="The texts; - is standard input, which is also read if there is neither a file nor "
            "--text. Name them before --choice and --score, or behind --.",
        ),
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="The text itself.")] = None,
    predicate: Annotated[
        list[str] | None,
        typer.Option("--predicate", metavar="STATEMENT", help="Is this true? May be repeated."),
    ] = None,
    choice: Annotated[
        list[str] | None,
        typer.Option(
            "--choice", metavar="QUESTION A B...", help="Which of these answers? May be repeated."
        ),
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            metavar="QUESTION LOW HIGH",
            help="Where on a scale? Two numbers, or the names of its levels, the lowest first. May be "
            "repeated.",
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="More questions: JSON as the `questions` of POST /v1/decisions.",
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Subtract what the model says about an empty text; not for scores."
        ),
    ] = False,
    margin: Annotated[
        float,
        typer.Option(
            "--margin", min=0, max=1, help="Abstain where the two best answers are closer."
        ),
    ] = MARGIN,
    min_label_mass: Annotated[
        float,
        typer.Option(
            "--min-label-mass",
            min=0,
            max=1,
            help="Refuse where all answers together are less likely than this.",
        ),
    ] = MIN_LABEL_MASS,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one object for each text, on a line.")
    ] = False,
    *,
    flags: dict[str, Any],
) -> None:
    """Decide questions about a text from the probabilities of one token each; nothing is generated.

    Exits with 0 if everything is decided and every predicate is true, with 3 if a predicate is false, and
    with 4 if an answer is too close to call or the model would say something else.
    """
    # Declared for --help: `DecideCommand` keeps what is given, which click could not read.
    del predicate, choice, score
    given = {**(context.obj or {}), **flags}
    refuse_remote_contradictions(given)
    with one_sentence_errors():
        from app.commands.fetch_bar import fetch_bar
        from app.commands.log_file import log_to_file
        from app.runtime.opening import open_client
        from app.settings.sources import load_settings

        asked = from_options(context.meta.get(ASKED, []))
        if questions is not None:
            asked += from_file(questions, read_text)
        if not asked:
            raise typer.BadParameter("ask something: --predicate, --choice, --score or --questions")
        texts = _texts(files or [], text)
        settings = load_settings(given)
        log_to_file(settings.log)
        outcomes: set[int] = set()
        with fetch_bar() as progress, open_client(settings, progress) as opened:
            decided = _decider(opened)
            for one in texts:
                found = decided(
                    one.text,
                    asked,
                    calibrate=calibrate,
                    margin=margin,
                    min_label_mass=min_label_mass,
                )
                print(_as_json(one, found) if as_json else _as_lines(one, found), flush=True)
                outcomes |= {_exit_status(answer) for answer in found.answers}
    raise typer.Exit(max(outcomes))


def _decider(opened: "OpenClient") -> Callable[..., "Decisions"]:
    """`decide` of the engine in this process, or of the server."""
    from app.runtime.opening import wait_loaded
    from engine.clients.http_client import HttpClient

    opened.start()
    wait_loaded(opened.client)
    if opened.engine is not None:
        return opened.engine.decide
    if not isinstance(opened.client, HttpClient):
        raise AssertionError("the engine is neither here nor on a server")
    return opened.client.decide


def _texts(files: Sequence[Path], text: str | None) -> list[_Text]:
    """The texts, each with the name that its answers are printed behind.

    Raises:
        typer.BadParameter: there is none, or two ways to name one are used.
        InvalidRequest: a file cannot be read or is empty.
    """
    from app.commands.standard_input import has_piped_input
    from engine.api.errors import InvalidRequest

    if text is not None and files:
        raise typer.BadParameter("--text and files exclude each other")
    if text is None and not files:
        if not has_piped_input():
            raise typer.BadParameter("Missing the text: a file, --text, or - for standard input.")
        files = [Path(_STDIN)]
    if text is not None:
        found = [_Text(None, text)]
    else:
        found = [_Text(None if len(files) == 1 else str(one), read_text(one)) for one in files]
    for one in found:
        if not one.text.strip():
            raise InvalidRequest(
                f"{one.name or 'The text'} is empty: there is nothing to decide on."
            )
    return found


def read_text(file: Path) -> str:
    """The text of a file; `-` is standard input.

    Raises:
        InvalidRequest: it cannot be read, or is not text.
    """
    from app.commands.standard_input import read_text as read_standard_input
    from engine.api.errors import InvalidRequest

    if str(file) == _STDIN:
        return read_standard_input()
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{file} is not UTF-8 text: byte {error.start}.") from error


def _exit_status(answer: "DecisionAnswer") -> int:
    if answer.outcome != "decided":
        return EXIT_UNDECIDED
    is_false = answer.question.kind == "predicate" and answer.best != 0
    return EXIT_FALSE if is_false else 0


def _as_json(text: _Text, found: "Decisions") -> str:
    from engine.clients.decision_wire import answer_json

    named = {} if text.name is None else {"file": text.name}
    usage = {
        "input_tokens": found.input_tokens,
        "cached_tokens": found.cached_tokens,
        "output_tokens": found.output_tokens,
    }
    answers = [answer_json(one) for one in found.answers]
    report = {**named, "model": found.model, "answers": answers, "usage": usage}
    return json.dumps(report, ensure_ascii=False)


def _as_lines(text: _Text, found: "Decisions") -> str:
    from app.text.safe_text import safe_text

    head = "" if text.name is None else f"{text.name}: "
    return "\n".join(safe_text(head + _line(one)) for one in found.answers)


def _line(answer: "DecisionAnswer") -> str:
    question: DecisionQuestion = answer.question
    asked = question.name or " ".join(question.text.split())
    if answer.outcome == "refused":
        return f"refused ({answer.label_mass:.1%} for all answers)  {asked}"
    unsure = "  not sure" if answer.outcome == "abstained" else ""
    share = answer.probabilities[answer.best]
    if question.kind == "score":
        return f"{answer.score:.2f}  {answer.label} {share:.0%}  {asked}{unsure}"
    others = sorted(
        zip(answer.probabilities, question.options, strict=True), key=lambda one: -one[0]
    )[1:4]
    rest = ""
    if question.kind == "choice":
        rest = "  (" + ", ".join(f"{name} {one:.0%}" for one, name in others) + ")"
    return f"{answer.label} {share:.0%}  {asked}{rest}{unsure}"
