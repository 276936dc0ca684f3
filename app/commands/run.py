"""`pravaha run`: one answer, or a text's score, to standard output."""

import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.outcome import EXIT_ERROR, EXIT_INTERRUPTED, one_sentence_errors
from app.commands.setting_options import (
    refuse_groups,
    refuse_remote_contradictions,
    setting_options,
)

if TYPE_CHECKING:
    from agents.guardrails.guardrails import CheckedText, OutputCheck
    from app.runtime.opening import OpenClient
    from app.settings.settings import Settings
    from app.slash.images import NamedImage
    from engine.api.generation_defaults import GenerationDefaults
    from engine.api.grammar import Grammar
    from engine.api.image import Image, PlacedImage
    from engine.api.request import SamplingParams, TokenBatch
    from engine.clients.engine_client import EngineClient

DEFAULT_MAX_TOKENS = 512
"""Small models may not stop by themselves; `--max-tokens` raises the limit."""


@setting_options("engine", "sampling", "guardrails", "remote")
def run(
    context: typer.Context,
    prompt: Annotated[
        str | None,
        typer.Argument(
            help="The question; text from a pipe or a file follows it. - is that text alone."
        ),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Continue the text without applying the model's chat template."),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one object: text, token ids, logprobs, timings, seed."),
    ] = False,
    images: Annotated[
        list[Path] | None,
        typer.Option(
            "--image",
            metavar="FILE",
            help="An image of the question (PNG, JPEG, GIF, WebP): a model that sees gets it, any other "
            "one its text, with the extra `ocr`. May be given several times.",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", metavar="FILE", help="Answer with JSON that matches this JSON schema."
        ),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(
            "--stop",
            metavar="TEXT",
            help="End the answer before this text, which may spell a control token. May be given several "
            "times.",
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            "--score",
            metavar="FILE",
            help="Print the model's perplexity and bits per byte on this text instead of an answer. "
            "- reads standard input.",
        ),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            "--stride",
            min=1,
            help="With --score, tokens between the starts of two windows; by default half of the "
            "context.",
        ),
    ] = None,
    *,
    flags: dict[str, Any],
) -> None:
    """Print one answer as it is generated.

    Samples with the model's own defaults, or greedily if it has none and no temperature is given;
    --temperature 0 makes the answer reproducible. Generates at most 512 tokens unless --max-tokens
    is given.
    """
    given = {**(context.obj or {}), **flags}
    refuse_remote_contradictions(given)
    _refuse_contradictions(
        given,
        prompt,
        raw=raw,
        score=score,
        stride=stride,
        has_images=bool(images),
        has_stops=bool(stop),
    )
    with one_sentence_errors():
        from app.commands.fetch_bar import fetch_bar
        from app.commands.log_file import log_to_file
        from app.commands.run_images import open_images
        from app.commands.standard_input import read_prompt
        from app.runtime.opening import open_client
        from app.settings.sources import load_settings
        from engine.api.errors import InvalidRequest

        settings = load_settings(given)
        log_to_file(settings.log)
        if score is not None:
            from app.commands.score import score_file

            with fetch_bar() as progress, open_client(settings, progress) as opened:
                score_file(opened, score, stride=stride, as_json=as_json)
            raise typer.Exit(0)
        if raw and "system" in given:
            raise InvalidRequest("--system needs the chat template, which --raw leaves out.")
        text = read_prompt(prompt)
        if not text:
            raise InvalidRequest("The prompt is empty: pass a question, or text on standard input.")
        if "" in (stop or ()):
            raise InvalidRequest("--stop is empty: give the text before which the answer ends.")
        named_images = open_images(images or ())
        grammar = None if schema is None else read_schema(schema)
        with fetch_bar() as progress, open_client(settings, progress) as opened:
            status = _answer(
                opened,
                settings,
                text,
                raw=raw,
                as_json=as_json,
                grammar=grammar,
                stop=stop or (),
                named_images=named_images,
            )
    raise typer.Exit(status)


def _refuse_contradictions(
    given: dict[str, Any],
    prompt: str | None,
    *,
    raw: bool,
    score: str | None,
    stride: int | None,
    has_images: bool,
    has_stops: bool,
) -> None:
    """Refuse options that would have no effect.

    Raises:
        typer.BadParameter: --score with options of an answer, neither a prompt nor --score, or images
            without a chat template.
    """
    from app.commands.standard_input import has_piped_input

    if has_stops and score is not None:
        raise typer.BadParameter("--stop has no effect with --score, which generates no text")
    if has_images and (raw or score is not None):
        raise typer.BadParameter("--image needs a question and the chat template")
    if score is None:
        if prompt is None and not has_piped_input():
            raise typer.BadParameter("Missing argument: the question, or - for standard input.")
        if stride is not None:
            raise typer.BadParameter("--stride needs --score")
        return
    if prompt is not None:
        raise typer.BadParameter("--score takes a file and no prompt")
    if raw:
        raise typer.BadParameter("--raw has no effect with --score, which applies no template")
    for group in ("sampling", "guardrails"):
        refuse_groups(given, group, reason="has no effect with --score, which generates no text")


@dataclass(slots=True)
class _Answer:
    """The part of the answer received so far; its text as it was checked."""

    text: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    interrupted: bool = False
    repeats: bool = False
    blocked: bool = False

    def take(self, batch: "TokenBatch") -> None:
        self.token_ids += batch.token_ids
        self.logprobs += batch.logprobs


def _answer(
    opened: "OpenClient",
    settings: "Settings",
    text: str,
    *,
    raw: bool,
    as_json: bool,
    grammar: "Grammar | None",
    stop: "Sequence[str]" = (),
    named_images: "Sequence[NamedImage]" = (),
) -> int:
    """Submit the request and print its answer; the exit status."""
    from agents.guardrails.redaction import RedactionMap
    from agents.guardrails.words import remarks_of
    from app.commands.run_images import read_question
    from app.runtime.guardrails import open_guardrails
    from app.runtime.opening import wait_loaded
    from app.slash.images import ReadMessage
    from app.text.continued_text import build_continues
    from engine.api.generation_defaults import GenerationDefaults
    from engine.api.request import FinishReason, Request

    client = opened.client
    guardrails, redactions = open_guardrails(settings), RedactionMap()
    question = None if named_images else _allowed(guardrails.check_input(text, redactions), raw=raw)
    check = guardrails.output_check(redactions)
    began = time.monotonic()
    opened.start()
    snapshot = wait_loaded(client)
    load_s = time.monotonic() - began
    info = snapshot.model
    read = ReadMessage(text)
    if named_images:
        read = read_question(text, named_images, info, attached=settings.attach is not None)
    if question is None:
        question = _allowed(guardrails.check_input(read.text, redactions), raw=raw)
    if info is not None and info.continues_text and not raw:
        print(f"pravaha: {build_continues(info)}", file=sys.stderr)
    ids, placed = _prompt(opened, settings, question, read.images, raw=raw)
    sampling = run_sampling(
        settings,
        info.generation_defaults if info else GenerationDefaults(),
        logprobs=0 if as_json else None,
        grammar=grammar,
        stop=stop,
    )
    request_id = client.submit(Request(ids, sampling, images=placed))
    answer = _Answer()
    last = _stream(
        client,
        request_id,
        answer,
        check,
        show=not as_json,
        stop_repetition=settings.stop_repetition,
    )
    for remark in remarks_of(check.detections, guardrails.policy.output_actions.__getitem__):
        print(f"pravaha: guardrails: {remark}.", file=sys.stderr)
    if as_json:
        model = snapshot.model.name if snapshot.model else None
        report = _report(answer, last, model=model, prompt_tokens=len(ids), load_s=load_s)
        if named_images:
            report["images"] = [
                {"name": one.name, "read_by": one.way, "text": one.text} for one in read.readings
            ]
        print(json.dumps(report, ensure_ascii=False))
    if last.finish_reason is FinishReason.ERROR:
        print(f"pravaha: {last.error}", file=sys.stderr)
        return EXIT_ERROR
    if answer.repeats:
        print(
            "pravaha: stopped: the answer repeats itself; --no-stop-repetition lets it go on.",
            file=sys.stderr,
        )
    if answer.blocked:
        print("pravaha: the answer was ended by the guardrails.", file=sys.stderr)
        return EXIT_ERROR
    return EXIT_INTERRUPTED if answer.interrupted else 0


def _allowed(checked: "CheckedText", *, raw: bool) -> str:
    """The question as the model reads it; what is flagged in it is said on standard error.

    Raises:
        InvalidRequest: it must not be sent.
    """
    from agents.guardrails.detection import Kind
    from agents.guardrails.words import counted_kinds, refusal
    from engine.api.errors import InvalidRequest

    if checked.blocked is not None:
        raise InvalidRequest(refusal(checked.blocked))
    # A raw text may have control tokens: its writer applies the template.
    expected = {Kind.SPECIAL_TOKEN} if raw else set()
    found = counted_kinds(one for one in checked.detections if one.kind not in expected)
    if found:
        print(f"pravaha: guardrails: the question contains {found}.", file=sys.stderr)
    return checked.text


def _stream(
    client: "EngineClient",
    request_id: str,
    answer: _Answer,
    check: "OutputCheck",
    *,
    show: bool,
    stop_repetition: bool,
) -> "TokenBatch":
    """Collect the answer and, with `show`, print it as the check lets it pass; its final batch.

    Ctrl+C ends the answer at the engine's next step and keeps its text, and so does, with
    `stop_repetition`, an answer that repeats itself without end.

    Raises:
        BrokenPipeError: the reader of the output has exited; the request was cancelled.
    """
    from app.text.safe_text import SafeStream
    from engine.clients.batch_reader import BatchReader
    from engine.text.repetition import RepetitionDetector

    detector = RepetitionDetector() if stop_repetition else None
    reader = BatchReader(client)
    # A terminal must not interpret a model's output; a file gets every character.
    safe = SafeStream() if sys.stdout.isatty() else None

    def on_interrupt(*_: object) -> None:
        answer.interrupted = True
        client.cancel(request_id)

    def write(text: str) -> None:
        answer.text.append(text)
        if show:
            sys.stdout.write(safe.feed(text) if safe else text)
            sys.stdout.flush()

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        for batch in reader.read(request_id):
            answer.take(batch)
            if detector and not answer.repeats and detector.feed(batch.token_ids):
                answer.repeats = batch.finish_reason is None
                if answer.repeats:
                    client.cancel(request_id)
            write(check.feed(batch.text))
            if check.blocked and not answer.blocked:
                answer.blocked = True
                client.cancel(request_id)
            last = batch
        write(check.finish())
        if show:
            sys.stdout.write((safe.flush() if safe else "") + "\n")
            sys.stdout.flush()
        answer.blocked |= check.blocked is not None
        return last
    except BrokenPipeError:
        client.cancel(request_id)
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _report(
    answer: _Answer, last: "TokenBatch", *, model: str | None, prompt_tokens: int, load_s: float
) -> dict[str, Any]:
    """The object that `--json` prints; times in seconds. `text` was checked, `token_ids` are as generated."""
    timings, count = last.timings, len(answer.token_ids)
    rate = None
    if timings.first_token is not None and timings.last_token is not None and count > 1:
        elapsed = timings.last_token - timings.first_token
        rate = (count - 1) / elapsed if elapsed > 0 else None
    return {
        "model": model,
        "text": "".join(answer.text),
        "token_ids": answer.token_ids,
        "logprobs": answer.logprobs,
        "finish_reason": _finish_reason(answer, last),
        "seed": last.seed,
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": count,
            "total_tokens": prompt_tokens + count,
        },
        "timings": {
            "load": load_s,
            "ttft": timings.ttft,
            "decode_tokens_per_second": rate,
        },
    }


def _finish_reason(answer: _Answer, last: "TokenBatch") -> str | None:
    if answer.blocked:
        return "content_filter"
    return "repetition" if answer.repeats else last.finish_reason


def read_schema(path: Path) -> "Grammar":
    """The grammar of a schema file.

    Raises:
        InvalidRequest: the file cannot be read, or is not a JSON schema.
    """
    from app.text.safe_text import safe_line
    from engine.api.errors import InvalidRequest
    from engine.api.grammar import Grammar
    from engine.grammar.source import library_text, parse_source

    try:
        grammar = Grammar.json_schema(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The schema {path} cannot be read: {error}.") from error
    # Reports an invalid schema before the model is loaded.
    _, left_out = library_text(grammar, parse_source(grammar))
    if left_out:
        names = safe_line(", ".join(left_out))
        print(f"pravaha: not enforced in {path}: {names}.", file=sys.stderr)
    return grammar


def run_sampling(
    settings: "Settings",
    defaults: "GenerationDefaults",
    *,
    logprobs: int | None,
    grammar: "Grammar | None",
    stop: "Sequence[str]" = (),
) -> "SamplingParams":
    """The given parameters, else the model's own; greedy if it has no temperature."""
    from dataclasses import replace

    sampling = settings.sampling().for_model(defaults)
    given = settings.is_set("temperature") or defaults.temperature is not None
    return replace(
        sampling,
        temperature=sampling.temperature if given else 0.0,
        max_tokens=sampling.max_tokens if settings.is_set("max_tokens") else DEFAULT_MAX_TOKENS,
        logprobs=logprobs,
        grammar=grammar,
        stop=tuple(stop),
    )


def _prompt(
    opened: "OpenClient",
    settings: "Settings",
    question: str,
    images: "Sequence[Image]",
    *,
    raw: bool,
) -> "tuple[tuple[int, ...], tuple[PlacedImage, ...]]":
    """Token ids of the prompt, and the places of its images."""
    if raw:
        return _raw_ids(opened, question), ()
    ids = _chat_ids(opened.client, settings, question, images=len(images))
    return opened.client.place_images(ids, images) if images else (ids, ())


def _raw_ids(opened: "OpenClient", text: str) -> tuple[int, ...]:
    """Token ids of plain text, as in `/v1/completions`: control tokens are recognised."""
    ids = opened.client.tokenize(text, special=True)
    bos = opened.bos()
    return (bos, *ids) if bos is not None and ids[:1] != [bos] else tuple(ids)


def _chat_ids(
    client: "EngineClient", settings: "Settings", text: str, *, images: int = 0
) -> tuple[int, ...]:
    """Token ids of one question in the model's chat template, as in a conversation.

    The default system prompt is omitted if the template has no system message; the user's own is not.
    """
    from engine.api.chat import content_with_images
    from engine.text.chat_encoding import ChatEncoder
    from engine.text.message_forms import has_system_role

    encoder = ChatEncoder(client.tokenize, client.render_chat, client.control_tokens())
    question = {"role": "user", "content": content_with_images(text, images)}
    messages = [question]
    if settings.system and (settings.is_set("system") or has_system_role(client.render_chat)):
        messages.insert(0, {"role": "system", "content": settings.system})
    return tuple(encoder.encode_chat(messages))
