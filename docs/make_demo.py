"""Writes docs/images/demo.svg, an animation of a short session with the demo model.

    python docs/make_demo.py [--theme ganga]

The session is recorded as by `pravaha --record`. The frames are taken from a slow replay, so that taking one
does not change what the next one shows; the animation has the recorded speed. Run it while nothing else
does: the figures in the frames are measured on this machine.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from app.commands.recording import (
    Replay,
    new_recording,
    open_replay,
    recorded_client,
    recorded_ids,
    write_start,
)
from app.runtime.opening import open_client, open_session, wait_loaded
from app.settings.sources import load_settings
from app.tui.app import PravahaApp
from app.tui.input_events import InputRecorder
from docs.screenshots.animation import Frame, build_animation, joined
from docs.screenshots.driven_screen import DrivenScreen, driven
from docs.screenshots.screen_svg import Colors, Palette

IMAGE = Path(__file__).parent / "images" / "demo.svg"
SIZE = (140, 31)
FRAMES_A_SECOND = 6
REPLAY_SPEED = 0.3
SETTINGS = {
    "kv_cache": "128MiB",
    "block_size": 16,
    "swap_bytes": 0,
    "temperature": 0.6,
    "top_p": 0.95,
    "seed": 21,
    "max_tokens": 160,
}
LOOK_S = 2.5
"""Seconds to look at something that does not move."""
STILL = "four answers"
"""Words of the caption whose middle frame is shown where nothing moves."""

Say = Callable[[str], None]


async def perform(screen: DrivenScreen, say: Say) -> None:
    """The session.

    Args:
        say: sets the caption.
    """
    say("Ask a question")
    await screen.type("What is photosynthesis?", pause_s=0.05)
    await asyncio.sleep(0.5)
    await screen.press("enter")
    await screen.begun()
    await screen.answered()
    await asyncio.sleep(LOOK_S)
    say("shift+tab, then x 4: four answers at once, from one prefill")
    await screen.press("shift+tab")
    await asyncio.sleep(0.6)
    await screen.press("x")
    await asyncio.sleep(0.6)
    await screen.press("4")
    await screen.begun()
    await screen.answered()
    await asyncio.sleep(LOOK_S)
    say("enter: go on with the first; the others stay in the tree")
    await screen.press("enter")
    await asyncio.sleep(LOOK_S)
    say("l c: the next answer beside the one before it; they part at the marked words")
    await screen.press("shift+tab", "l", "c")
    await asyncio.sleep(LOOK_S + 1)
    say("t: tint the answer by how unlikely its tokens were")
    await screen.press("escape", "t")
    await asyncio.sleep(LOOK_S)
    say("} and .: an unlikely token, and what else could have followed")
    await screen.press("}")
    await asyncio.sleep(0.8)
    await screen.press(".")
    await screen.shows("%")
    await asyncio.sleep(LOOK_S)
    say("enter: fork there, with another token; what came before is in the KV cache")
    await screen.press("down", "enter")
    await screen.begun()
    await screen.answered()
    await asyncio.sleep(LOOK_S)
    say("ctrl+t: the tree of the conversation")
    await screen.press("ctrl+t")
    for _ in range(3):
        await asyncio.sleep(0.5)
        await screen.press("j")
    await asyncio.sleep(LOOK_S)
    say("x 9, f10: nine more answers, and the scheduler that runs them")
    await screen.press("escape", "x", "9", "f10")
    await screen.begun()
    await screen.until(lambda: not screen.client.snapshot().running, "the end of all answers")
    await asyncio.sleep(0.3)
    say("<: the engine as it was a second earlier")
    await screen.press("<")
    await asyncio.sleep(LOOK_S)


async def record(path: Path, folder: Path, theme: str) -> list[tuple[float, str]]:
    """Record the session; the captions with their seconds, the last one an end.

    Args:
        path: the recording, a new file.
        folder: for the conversations.
    """
    settings = load_settings(SETTINGS | {"data_dir": folder})
    captions: list[tuple[float, str]] = []
    with open_client(settings) as opened:
        opened.start()
        wait_loaded(opened.client)
        began = time.monotonic()
        with new_recording(path) as recording:
            client = recorded_client(opened.client, recording)
            new_id = recorded_ids(recording)
            with open_session(settings, client, resume=False, new_id=new_id) as session:
                write_start(recording, session, settings, theme=theme)
                inputs = InputRecorder(partial(recording.write, "input"))
                app = PravahaApp(
                    client, session, version=metadata.version("pravaha"), theme=theme, inputs=inputs
                )
                async with driven(app, client, session, SIZE) as screen:
                    await perform(
                        screen, lambda text: captions.append((time.monotonic() - began, text))
                    )
                    captions.append((time.monotonic() - began, ""))
    return captions


async def frames_of(
    path: Path, captions: list[tuple[float, str]], palette: Palette
) -> tuple[list[Frame], Colors]:
    """Frames of the replayed session, at equal intervals from the first to the last caption."""
    begins = [at for at, _ in captions]
    frames: list[Frame] = []
    with open_replay(path, speed=REPLAY_SPEED) as replay:
        app = PravahaApp(
            replay.client,
            replay.session,
            version=metadata.version("pravaha"),
            theme=replay.facts["theme"],
            inputs=replay.inputs,
            clock=replay.wall_clock,
            wall_clock=replay.wall_clock,
        )
        began = float(replay.facts["time"])
        async with driven(app, replay.client, replay.session, SIZE) as screen:
            replay.inputs.start(app)
            at = begins[0]
            while at < begins[-1]:
                await screen.until(partial(_reached, replay, began + at), f"second {at:.1f}")
                caption = captions[bisect_right(begins, at) - 1][1]
                frames.append(Frame(1 / FRAMES_A_SECOND, screen.rows(palette), caption))
                at += 1 / FRAMES_A_SECOND
            return joined(frames), screen.colors


def _reached(replay: Replay, time_: float) -> bool:
    return replay.wall_clock() >= time_


async def make(path: Path, folder: Path, theme: str) -> str:
    """Record, replay and draw."""
    captions = await record(path, folder, theme)
    palette = Palette()
    frames, colors = await frames_of(path, captions, palette)
    stills = [index for index, frame in enumerate(frames) if STILL in frame.caption]
    return build_animation(
        frames,
        palette,
        SIZE[0],
        colors,
        still=stills[len(stills) // 2],
        title="Pravāha: a question, four answers side by side, a comparison, a fork at a token, the tree",
    )


def main() -> None:
    """Write the animation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--theme", default="ganga")
    arguments = parser.parse_args()
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:
        svg = asyncio.run(make(Path(folder) / "session", Path(folder), arguments.theme))
    IMAGE.write_text(svg, encoding="utf-8")
    print(f"{IMAGE.name}: {len(svg) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
