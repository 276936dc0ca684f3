"""Writes docs/images/chat.svg: the real application with the demo model, answering questions.

    python docs/make_screenshot.py [--size 140x40] [--theme ganga]

The figures in the image are measured on this machine: run it while nothing else does.
"""

import argparse
import asyncio
import os
import re
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

IMAGE = Path(__file__).parent / "images" / "chat.svg"
QUESTIONS = (
    "Tell me about the river Ganges.",
    "Which animals live in it?",
    "How do rivers form valleys?",
    "Which cities lie on a large river?",
    "What is the capital of France?",
    "Why is the sky blue? Explain in a short list.",
)
"""Several, because the throughput on the screen is that of the last two seconds."""
WORDS = 34
"""Words of the last answer after which the screenshot is taken."""
DEADLINE_S = 300

_FONT_FACE = re.compile(r"@font-face\s*\{[^}]*\}")
_FONTS = "Fira Code, DejaVu Sans Mono, Menlo, Consolas, monospace"


def self_contained(svg: str) -> str:
    """The image without remote fonts, which a page that shows it may not fetch."""
    return _FONT_FACE.sub("", svg).replace("font-family: Fira Code,", f"font-family: {_FONTS},")


async def until(condition: Callable[[], bool]) -> None:
    """Yield to the event loop until `condition` holds."""
    while not condition():  # noqa: ASYNC110 - neither engine nor session has an event to wait for
        await asyncio.sleep(0.02)


async def take(width: int, height: int, theme: str, folder: Path) -> str:
    """Hold a short conversation and return the screen as SVG."""
    from app.runtime.opening import open_client, open_session
    from app.settings.sources import load_settings
    from app.tui.app import PravahaApp

    settings = load_settings(
        {"data_dir": folder, "kv_cache": "512MiB", "temperature": 0.0, "max_tokens": 160}
    )
    with (
        open_client(settings) as opened,
        open_session(settings, opened.client, resume=False) as session,
    ):
        app = PravahaApp(
            opened.client,
            session,
            version=metadata.version("pravaha"),
            theme=theme,
            on_first_frame=opened.start,
        )
        async with app.run_test(size=(width, height)), asyncio.timeout(DEADLINE_S):
            await until(lambda: opened.client.snapshot().model is not None)
            for question in QUESTIONS[:-1]:
                await app.send(question)
                await until(lambda: not session.generating)
            await app.send(QUESTIONS[-1])
            await until(
                lambda: not session.generating or len(session.path()[-1].text.split()) >= WORDS
            )
            return self_contained(app.export_screenshot())


def main() -> None:
    """Write the screenshot."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", default="140x40", help="columns and rows")
    parser.add_argument("--theme", default="ganga")
    arguments = parser.parse_args()
    width, height = map(int, arguments.size.split("x"))
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:
        svg = asyncio.run(take(width, height, arguments.theme, Path(folder)))
    IMAGE.parent.mkdir(exist_ok=True)
    IMAGE.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
