"""Processor time of the KV map: a screen with the map, minus the same screen without it.

    python benchmarks/ui/kv_map.py [--blocks 10240] [--hz 10] [--changed 16] [--seconds 10] [--json]

Draws a pool of `--blocks` blocks at `--hz` frames a second in a headless app of 120×36 cells, with the
compositor and the output of the real one; between two frames `--changed` random blocks change their state.
Prints the processor time of the process as a share of one core with and without the map, their difference
(the gate is 5 %), and the time and bytes of a frame.
"""

import argparse
import asyncio
import json
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rich.console import RenderableType
from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from app.tui.glyphs import UNICODE
from app.tui.textual_workarounds.paced_output import PacedOutput
from app.tui.textual_workarounds.partial_compositor import MainScreen
from app.tui.themes import BUILT_IN, DEFAULT, load_themes
from app.tui.widgets.kv_map import KvMap
from benchmarks.machine import with_origin
from engine.api.snapshot import BlockMap, BlockState

BLOCK_SIZE = 16
OWNERS = 32
SIZE = (120, 36)


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement.

    Attributes:
        with_map, without_map: processor time as a share of a core.
        frame_ms: mean time of `KvMap.show`.
        frame_bytes: mean bytes written to the terminal per frame.
    """

    blocks: int
    hz: float
    changed: int
    with_map: float
    without_map: float
    frame_ms: float
    frame_bytes: float

    @property
    def share(self) -> float:
        """The map's share of a core."""
        return self.with_map - self.without_map


class Pool:
    """Block maps of a busy pool: clustered requests, and random changes from one map to the next."""

    def __init__(self, blocks: int, changed: int) -> None:
        self._random = np.random.default_rng(1)
        self._changed = changed
        self._epoch = 0
        owner = np.minimum(np.arange(blocks) * OWNERS // blocks, OWNERS - 1).astype(np.int32)
        self._state = np.full(blocks, BlockState.ACTIVE, np.uint8)
        self._state[blocks // 2 :] = BlockState.CACHED
        self._owner = np.where(self._state == BlockState.ACTIVE, owner, -1).astype(np.int32)

    def next(self) -> BlockMap:
        """The map after another change."""
        self._epoch += 1
        at = self._random.integers(0, len(self._state), self._changed)
        self._state[at] = self._random.integers(0, 3, self._changed)
        self._owner[at] = self._random.integers(0, OWNERS, self._changed)
        self._owner[self._state != BlockState.ACTIVE] = -1
        held = np.flatnonzero(self._owner >= 0).astype(np.int32)
        order = np.argsort(self._owner[held], kind="stable")
        blocks = len(self._state)
        return BlockMap(
            epoch=self._epoch,
            state=self._state.copy(),
            refcount=(self._owner >= 0).astype(np.uint16),
            fill=np.full(blocks, BLOCK_SIZE, np.uint8),
            owner=self._owner.copy(),
            owners=tuple(f"req-{number}" for number in range(OWNERS)),
            first_token=np.zeros(blocks, np.int32),
            pinned=np.zeros(blocks, np.bool_),
            last_used=np.full(blocks, np.nan),
            held_blocks=held[order],
            held_by=self._owner[held][order],
        )


class CountingApp(App[None]):
    """A headless app, which writes nothing: makes the text that a terminal would get, and counts it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.written = 0

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        render = getattr(renderable, "render_segments", None)
        if render is not None and not self._batch_count:
            self.written += len(render(self.console).encode())


class MapApp(PacedOutput, CountingApp):
    """An app with the map, or with an empty widget in its place."""

    def __init__(self, *, with_map: bool) -> None:
        super().__init__()
        self._with_map = with_map

    def get_default_screen(self) -> MainScreen:
        """The screen of the real app."""
        return MainScreen(nullcontext, classes="")

    def compose(self) -> ComposeResult:
        """The map, or nothing that draws."""
        yield KvMap(UNICODE, colored=True) if self._with_map else Static()

    def on_mount(self) -> None:
        """Use the default theme."""
        theme = load_themes([BUILT_IN])[DEFAULT].theme
        if theme is not None:
            self.register_theme(theme)
            self.theme = theme.name


async def measure(arguments: argparse.Namespace, *, with_map: bool) -> tuple[float, float, float]:
    """Share of a core, seconds per call of `show`, bytes per frame."""
    app, pool = MapApp(with_map=with_map), Pool(arguments.blocks, arguments.changed)
    period, drawing, frames = 1 / arguments.hz, 0.0, 0
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await asyncio.sleep(1.0)
        app.written = 0
        cpu, until = time.process_time(), time.monotonic() + arguments.seconds
        while time.monotonic() < until:
            blocks = pool.next()
            began = time.perf_counter()
            if with_map:
                app.query_one(KvMap).show(blocks, "req-3", block_size=BLOCK_SIZE, now=1.0)
            drawing += time.perf_counter() - began
            frames += 1
            await asyncio.sleep(period)
        share = (time.process_time() - cpu) / arguments.seconds
    return share, drawing / frames, app.written / frames


async def compare(arguments: argparse.Namespace) -> Result:
    """Measure with and without the map."""
    without_map, _, _ = await measure(arguments, with_map=False)
    with_map, frame, written = await measure(arguments, with_map=True)
    return Result(
        arguments.blocks,
        arguments.hz,
        arguments.changed,
        with_map,
        without_map,
        frame * 1e3,
        written,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=10_240)
    parser.add_argument("--hz", type=float, default=10.0, help="frames a second")
    parser.add_argument("--changed", type=int, default=16, help="blocks that change per frame")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds per measurement")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    arguments = parser.parse_args()
    result = asyncio.run(compare(arguments))
    if arguments.json:
        print(json.dumps(with_origin({"kv_map": asdict(result)}), indent=1))
        return
    print(
        f"{result.blocks} blocks, {result.changed} changes a frame, {result.hz:g} frames a second\n"
        f"  processor time: {result.share:.1%} of a core "
        f"({result.with_map:.1%} with the map, {result.without_map:.1%} without)\n"
        f"  a frame: {result.frame_ms:.2f} ms in `show`, {result.frame_bytes:.0f} bytes"
    )


if __name__ == "__main__":
    main()
