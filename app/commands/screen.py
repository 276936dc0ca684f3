"""`pravaha`: the full-screen chat."""

import gc
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.commands.outcome import EXIT_ERROR, EXIT_USAGE

if TYPE_CHECKING:
    from app.settings.preferences import Preferences
    from app.settings.settings import Settings

ENGINE_NICENESS = 5
"""Niceness of the engine's threads, which use all processors: the scheduler gives the screen about three
quarters of one processor while it draws, which it does 5 % of the time."""

GARBAGE_THRESHOLD = 10_000
"""Allocations before a garbage collection. Drawing allocates many objects and few cycles: with Python's
default of 700, collections took 7 % of the screen's time."""

_MODEL = "model"
"""The preference that names the model last chosen on the screen."""

_STARTED = "started"
"""The preference that is set once the screen has been opened."""

INTERPRETER_SLICE_S = 0.0005
"""Switch interval of the interpreter. Between two steps the engine needs the GIL for 0.2 ms, and with
Python's default it would wait up to 5 ms for it."""


def open_screen(flags: dict[str, Any], *, record: Path | None = None) -> int:
    """Run the screen; the exit status.

    The model is loaded after the first frame.

    Args:
        flags: the options given.
        record: file to record the session to.
    """
    return _on_terminal(partial(_run_screen, flags, record))


def replay_screen(
    flags: dict[str, Any], path: Path, *, speed: float = 1.0, ends: bool = False
) -> int:
    """Play a recording on the screen; the exit status.

    Args:
        flags: the options given; those of the screen apply.
        path: the recording.
        speed: recorded seconds per second.
        ends: quit when the recording ends.
    """
    return _on_terminal(partial(_run_replay, flags, path, speed=speed, ends=ends))


def _on_terminal(run: Callable[[], int]) -> int:
    """Run a screen with the collector and the interpreter set up for it."""
    in_browser = "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")  # set by textual-serve
    if not in_browser and not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(
            "pravaha: the full-screen chat needs a terminal: use `pravaha run` for one answer "
            "or `pravaha --serve` for the API.",
            file=sys.stderr,
        )
        return EXIT_USAGE
    problem = "" if in_browser else terminal_problem(os.environ)
    if problem:
        print(f"pravaha: {problem}", file=sys.stderr)
        return EXIT_USAGE
    # Objects allocated before the first frame stay alive; collections took 10 % of the start-up time.
    gc.disable()
    slice_before, thresholds_before = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(INTERPRETER_SLICE_S)
    gc.set_threshold(GARBAGE_THRESHOLD, *thresholds_before[1:])
    try:
        return run()
    finally:
        sys.setswitchinterval(slice_before)
        gc.set_threshold(*thresholds_before)
        gc.enable()


def terminal_problem(environ: Mapping[str, str]) -> str:
    """Why the terminal cannot show the screen; empty if it can."""
    term = environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return (
            f"the terminal (TERM={term or 'unset'}) cannot move its cursor: use `pravaha --plain`."
        )
    return ""


def with_chosen_model(settings: "Settings", preferences: "Preferences") -> "Settings":
    """The settings with the model that was last chosen on the screen, unless a source names one."""
    chosen = preferences.get(_MODEL)
    if chosen is None or settings.attach is not None or settings.is_set("model"):
        return settings
    return settings.model_copy(update={"model": chosen})


def _run_screen(flags: dict[str, Any], record: Path | None) -> int:
    from importlib import metadata

    from agents.service.confined_service import ConfinedRunService
    from app.commands.background_server import BackgroundServer
    from app.commands.fetch_bar import fetch_bar
    from app.commands.log_file import log_to_file
    from app.commands.recording import (
        new_recording,
        recorded_client,
        recorded_ids,
        refuse_unrecorded,
        write_start,
    )
    from app.commands.session_figures import remote_session_figures, session_figures
    from app.runtime.agents import open_run_service
    from app.runtime.chat_tools import ChatTools
    from app.runtime.guardrails import open_guardrails
    from app.runtime.model_hub import open_hub
    from app.runtime.opening import open_screen_client, open_session, open_sources
    from app.server.process.sessions import Sessions
    from app.settings.listing import list_settings
    from app.settings.preferences import Preferences
    from app.settings.sources import load_settings
    from app.text.log_ring import kept_log
    from engine.conversations.thinking import read_thinking
    from engine.retrieval.parsing.image_reader import ImageReader

    settings = load_settings(flags)
    preferences = Preferences(settings.preferences)
    settings = with_chosen_model(settings, preferences)
    log_to_file(settings.log)
    # The glyph table is chosen by this variable; write flags and files into it.
    os.environ["PRAVAHA_CHARSET"] = settings.charset
    with ExitStack() as stack:
        log_ring = stack.enter_context(kept_log())
        progress = stack.enter_context(fetch_bar())
        recording = stack.enter_context(new_recording(record)) if record else None
        opened = stack.enter_context(
            open_screen_client(settings, progress, niceness=ENGINE_NICENESS)
        )
        from app.tui.app import PravahaApp
        from app.tui.input_events import InputRecorder
        from app.tui.native_output import native_output_to
        from app.tui.themes import has_true_colors

        client, new_id, inputs = opened.client, None, None
        if recording is not None:
            refuse_unrecorded(settings, several_models=opened.models is not None)
            client = recorded_client(client, recording)
            new_id = recorded_ids(recording)
            inputs = InputRecorder(partial(recording.write, "input"))
        run_service = open_run_service(settings, opened.engine)
        stack.callback(run_service.close)
        chat_tools = ChatTools(
            run_service,
            Path.cwd(),
            settings.chat_tools,
            form=settings.tool_call_form,
            decision=settings.tool_decision,
        )
        stack.callback(chat_tools.close)
        session_tools = chat_tools if recording is None else None
        engine_server = None
        if opened.engine is not None:
            root = settings.agents_root
            engine_server = BackgroundServer(
                opened.served or opened.engine,
                port=settings.port,
                api_key=settings.plain_api_key,
                cors_origins=settings.cors_origin,
                tool_call_form=settings.tool_call_form,
                tool_decision=settings.tool_decision,
                guardrails=partial(open_guardrails, settings),
                run_service=ConfinedRunService(run_service, () if root is None else [root]),
                retrieval_folder=settings.vector_stores,
                responses_file=settings.responses,
            )
            stack.callback(engine_server.stop)
        own_sessions = Sessions()
        sessions = (
            session_figures(own_sessions, engine_server.sessions if engine_server else None)
            if settings.attach is None
            else remote_session_figures(opened.client)
        )
        first_start = preferences.get(_STARTED) is None
        background = settings.attach is not None
        sources = stack.enter_context(open_sources(settings, opened.engine))
        image_reader = stack.enter_context(closing(ImageReader()))
        with open_session(
            settings,
            client,
            resume=True,
            new_id=new_id,
            background=background,
            passages=sources,
            tools=session_tools,
            models=opened.models,
            on_answered=own_sessions.add,
        ) as session:
            session.answers.thinking = read_thinking(settings.thinking or "")
            theme = settings.theme or preferences.get("theme")
            if recording is not None:
                write_start(recording, session, settings, theme=theme)

            def save_model(name: str) -> None:
                if settings.attach is None and opened.models is None:  # else it is the server's
                    preferences.set(_MODEL, name)

            def first_frame() -> None:
                gc.freeze()
                gc.enable()
                opened.start()
                preferences.set(_STARTED, "yes")

            app = PravahaApp(
                client,
                session,
                theme=theme,
                avatar=settings.avatar,
                avatars_dir=settings.avatars,
                notify_by=settings.notify,
                first_start=first_start,
                true_colors=has_true_colors(os.environ),
                on_theme=partial(preferences.set, "theme"),
                on_model=save_model,
                themes_dir=settings.themes,
                keymap=settings.keymap,
                log_file=settings.log,
                log_ring=log_ring,
                settings=list_settings(settings),
                model_hub=None if opened.engine is None else open_hub(settings.models),
                version=metadata.version("pravaha"),
                server=settings.attach,
                engine_server=engine_server,
                run_service=run_service,
                chat_tools=session_tools,
                edit_root=Path.cwd(),
                memory_file=settings.memory,
                sources=sources,
                sessions=sessions,
                image_reader=image_reader,
                on_first_frame=first_frame,
                inputs=inputs,
            )
            with native_output_to(settings.log):
                app.run(mouse=settings.mouse)
            status = app.return_code or 0
    if status == EXIT_ERROR:
        print(f"Pravāha crashed; details in {settings.log}.", file=sys.stderr)
    elif status == 0:
        print("Your conversations are saved; the next start reopens the last one.")
    return status


def _run_replay(flags: dict[str, Any], path: Path, *, speed: float, ends: bool) -> int:
    from importlib import metadata

    from app.commands.log_file import log_to_file
    from app.commands.recording import open_replay
    from app.settings.sources import load_settings
    from app.text.log_ring import kept_log

    settings = load_settings(flags)
    log_to_file(settings.log)
    os.environ["PRAVAHA_CHARSET"] = settings.charset
    with kept_log() as log_ring, open_replay(path, speed=speed, ends=ends) as replay:
        from app.tui.app import PravahaApp
        from app.tui.native_output import native_output_to
        from app.tui.themes import has_true_colors

        app: PravahaApp

        def first_frame() -> None:
            gc.freeze()
            gc.enable()
            replay.inputs.start(app)

        app = PravahaApp(
            replay.client,
            replay.session,
            theme=settings.theme or replay.facts.get("theme"),
            avatar=settings.avatar,
            avatars_dir=settings.avatars,
            true_colors=has_true_colors(os.environ),
            themes_dir=settings.themes,
            keymap=settings.keymap,
            log_ring=log_ring,
            version=metadata.version("pravaha"),
            server=replay.facts.get("server"),
            on_first_frame=first_frame,
            inputs=replay.inputs,
            wall_clock=replay.wall_clock,
        )
        with native_output_to(settings.log):
            app.run(mouse=settings.mouse)
        return app.return_code or 0
