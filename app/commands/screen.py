"""`pravaha`: the full-screen chat."""

import gc
import os
import sys
from functools import partial
from typing import Any

from app.commands.outcome import EXIT_ERROR, EXIT_USAGE

ENGINE_NICENESS = 5
"""Niceness of the engine's threads, which use all processors: the scheduler gives the screen about three
quarters of one processor while it draws, which it does 5 % of the time."""

GARBAGE_THRESHOLD = 10_000
"""Allocations before a garbage collection. Drawing allocates many objects and few cycles: with Python's
default of 700, collections took 7 % of the screen's time."""

INTERPRETER_SLICE_S = 0.0005
"""Switch interval of the interpreter. Between two steps the engine needs the GIL for 0.2 ms, and with
Python's default it would wait up to 5 ms for it."""


def open_screen(flags: dict[str, Any]) -> int:
    """Run the screen; the exit status.

    The model is loaded after the first frame.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(
            "pravaha: the full-screen chat needs a terminal: use `pravaha run` for one answer "
            "or `pravaha --serve` for the API.",
            file=sys.stderr,
        )
        return EXIT_USAGE
    # Objects allocated before the first frame stay alive; collections took 10 % of the start-up time.
    gc.disable()
    slice_before, thresholds_before = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(INTERPRETER_SLICE_S)
    gc.set_threshold(GARBAGE_THRESHOLD, *thresholds_before[1:])
    try:
        return _run_screen(flags)
    finally:
        sys.setswitchinterval(slice_before)
        gc.set_threshold(*thresholds_before)
        gc.enable()


def _run_screen(flags: dict[str, Any]) -> int:
    from importlib import metadata

    from app.commands.fetch_bar import fetch_bar
    from app.commands.log_file import log_to_file
    from app.runtime.opening import open_client, open_session
    from app.settings.preferences import Preferences
    from app.settings.sources import load_settings

    settings = load_settings(flags)
    log_to_file(settings.log)
    # The glyph table is chosen by this variable; write flags and files into it.
    os.environ["PRAVAHA_CHARSET"] = settings.charset
    with (
        fetch_bar() as progress,
        open_client(settings, progress, niceness=ENGINE_NICENESS) as opened,
    ):
        from app.tui.app import PravahaApp
        from app.tui.native_output import native_output_to

        preferences = Preferences(settings.preferences)
        with open_session(settings, opened.client, resume=True) as session:

            def first_frame() -> None:
                gc.freeze()
                gc.enable()
                opened.start()

            app = PravahaApp(
                opened.client,
                session,
                theme=settings.theme or preferences.get("theme"),
                on_theme=partial(preferences.set, "theme"),
                themes_dir=settings.themes,
                keymap=settings.keymap,
                version=metadata.version("pravaha"),
                server=settings.attach,
                on_first_frame=first_frame,
            )
            with native_output_to(settings.log):
                app.run()
            status = app.return_code or 0
    if status == EXIT_ERROR:
        print(f"pravaha: the screen failed; {settings.log} has the traceback.", file=sys.stderr)
    elif status == 0:
        print("Your conversations are saved; `pravaha` opens the last one again.")
    return status
