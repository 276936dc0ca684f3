"""`pravaha`: the full-screen chat."""

import gc
import os
import sys
from functools import partial
from typing import Any

from app.commands.outcome import EXIT_ERROR, EXIT_USAGE

ENGINE_NICENESS = 5
"""A key finds a processor at once, although the engine uses all of them: three quarters of one are the
screen's whenever it has something to draw, which is a twentieth of the time."""

GARBAGE_THRESHOLD = 10_000
"""New objects after which garbage is looked for. Drawing makes many and hardly a cycle: with Python's 700
the search was a fifteenth of what the screen takes."""

INTERPRETER_SLICE_S = 0.0005
"""How long the screen may keep the interpreter once the engine asks for it. Between two steps the engine
needs it for a fifth of a millisecond, and would wait for up to five by default."""


def open_screen(flags: dict[str, Any]) -> int:
    """Open the screen and wait for its end; the exit status.

    The model loads after the first frame: nothing of it is read before.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(
            "pravaha: the full-screen chat needs a terminal: use `pravaha run` for one answer "
            "or `pravaha --serve` for the API.",
            file=sys.stderr,
        )
        return EXIT_USAGE
    # What is allocated until the first frame stays: looking for garbage in it took a tenth of that time.
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
    # The glyph table is chosen by the variable alone; flags and files stand in it too.
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
                on_first_frame=first_frame,
            )
            with native_output_to(settings.log):
                app.run()
            status = app.return_code or 0
    if status == EXIT_ERROR:
        print(f"pravaha: the screen failed; {settings.log} says where.", file=sys.stderr)
    elif status == 0:
        print("Your conversations are saved: pravaha comes back to the last one.")
    return status
