"""`pravaha chat`: the screen, or with `--plain` the line-mode chat."""

import signal
import sys
from contextlib import closing
from typing import Annotated, Any

import typer

from app.commands.outcome import EXIT_ERROR, EXIT_INTERRUPTED, one_sentence_errors
from app.commands.setting_options import refuse_remote_contradictions, setting_options


@setting_options("engine", "sampling", "documents", "guardrails", "remote")
def chat(
    context: typer.Context,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Line mode: for pipes, screen readers, simple terminals."),
    ] = False,
    *,
    flags: dict[str, Any],
) -> None:
    """Chat on the screen, or in line mode with --plain.

    With standard input from a pipe, each line is a message of a new conversation.
    """
    given = {**(context.obj or {}), **flags}
    refuse_remote_contradictions(given)
    with one_sentence_errors():
        if plain:
            status = chat_plain(given)
        else:
            from app.commands.screen import open_screen

            status = open_screen(given)
    raise typer.Exit(status)


def chat_plain(flags: dict[str, Any]) -> int:
    """Run the plain chat on standard input and output; the exit status."""
    from app.commands.fetch_bar import fetch_bar
    from app.commands.log_file import log_to_file
    from app.plain.repl import PlainChat
    from app.runtime.opening import open_client, open_session, open_sources, wait_loaded
    from app.settings.sources import load_settings
    from app.text.continued_text import build_continues
    from engine.retrieval.parsing.image_reader import ImageReader

    settings = load_settings(flags)
    log_to_file(settings.log)
    typed = sys.stdin.isatty()
    interrupted = False
    with (
        fetch_bar() as progress,
        open_client(settings, progress, model_required=not typed) as opened,
    ):
        opened.start()
        with (
            open_sources(settings, opened.engine) as sources,
            open_session(settings, opened.client, resume=typed, passages=sources) as session,
            closing(ImageReader()) as image_reader,
        ):
            plain = PlainChat(
                session,
                opened.client,
                read=_read_line,
                out=sys.stdout,
                show_prompts=typed,
                memory_file=settings.memory,
                sources=sources,
                image_reader=image_reader,
                attached=settings.attach is not None,
            )

            def on_interrupt(*_: object) -> None:
                nonlocal interrupted
                if not session.answers.running or interrupted:
                    raise KeyboardInterrupt
                interrupted = not typed  # with a pipe, the first Ctrl+C ends the chat cleanly
                plain.stop()

            before = signal.signal(signal.SIGINT, on_interrupt)
            try:
                if not typed:
                    model = wait_loaded(opened.client).model
                    if model is not None and model.continues_text:
                        print(f"pravaha: {build_continues(model)}", file=sys.stderr)
                succeeded = plain.run()
            finally:
                signal.signal(signal.SIGINT, before)
    if interrupted:
        return EXIT_INTERRUPTED
    # With a pipe, only the exit status reports errors; an interactive user has seen them.
    return 0 if succeeded or typed else EXIT_ERROR


def _read_line(prompt: str) -> str:
    # `input` with readline would write escape sequences to the terminal.
    if prompt:
        sys.stdout.write(prompt)
        sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        if prompt:
            sys.stdout.write("\n")
        raise EOFError
    return line.rstrip("\r\n")
