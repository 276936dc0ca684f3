"""A figure read from a text file: size, palette of theme roles, states and their frames.

    size 16x16
    palette o=$avatar-outline b=$avatar-body
    state decode fps 8 loop ascii "(>o<)" "(>-<)"
    order decode 0 1 0 1 1
    frame decode 0
    ......oooo......
    …
    size2 10x4
    frame2 decode 0
    ....oooo..
    …

`size2` and `frame2`, which may be left out, are the form of two text rows, shown in the header.
`order`, if given, is the sequence in which a state's frames are shown. Play modes: `loop`; `once`
(hold the last frame); `progress` (the frame follows a share of 0–1, not time). `.` is transparent.
The loader reports all errors of a file at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app.tui.view.mood import Mood

FOLDER = Path(__file__).parent

_FALLBACKS = {
    Mood.SWAPPING: Mood.KV_PRESSURE,
    Mood.KV_PRESSURE: Mood.DECODE,
    Mood.DECODE: Mood.IDLE,
}
"""Substitutes of moods without frames; the substitute of all others is idle."""


class Play(StrEnum):
    """The order in which a state's frames are shown."""

    LOOP = "loop"
    ONCE = "once"
    PROGRESS = "progress"


@dataclass(frozen=True, slots=True)
class State:
    """Frames of one mood.

    Attributes:
        faces: the ASCII form, in the order of the frames; may be empty.
        frames: rows of palette letters, `height` rows of `width` letters each.
        small: the same in the form of two text rows, one for each frame; may be empty.
    """

    fps: int
    play: Play
    faces: tuple[str, ...]
    frames: tuple[tuple[str, ...], ...]
    small: tuple[tuple[str, ...], ...] = ()

    def index(self, elapsed: float, *, fps: int | None = None, progress: float = 0.0) -> int:
        """The frame shown `elapsed` seconds after the state began."""
        count = len(self.frames)
        if self.play is Play.PROGRESS:
            return min(count - 1, int(progress * count))
        step = int(max(0.0, elapsed) * (fps or self.fps))
        return step % count if self.play is Play.LOOP else min(step, count - 1)

    def still(self, elapsed: float) -> bool:
        """Whether no further frame follows while the state lasts."""
        if self.play is Play.ONCE:
            return elapsed * self.fps >= len(self.frames) - 1
        return len(self.frames) == 1


@dataclass(frozen=True, slots=True)
class Figure:
    """A valid figure.

    Attributes:
        palette: letter → theme variable, without the `$`.
    """

    width: int
    height: int
    palette: Mapping[str, str]
    states: Mapping[Mood, State]

    def state(self, mood: Mood) -> State:
        """Frames of the mood, or of its nearest substitute that has some."""
        while mood not in self.states:
            mood = _FALLBACKS.get(mood, Mood.IDLE)
        return self.states[mood]


class FigureError(ValueError):
    """A figure file is invalid; the message lists all errors."""


_STATE = re.compile(r'state (\w+) fps (\d+) (\w+)((?: ascii(?: "[^"]*")+)?)$')


_MOODS = frozenset(mood.value for mood in Mood)
_PLAYS = frozenset(play.value for play in Play)


class _Parser:
    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[str] = []
        self.size: tuple[int, int] | None = None
        self.palette: dict[str, str] = {}
        self.headers: dict[Mood, tuple[int, Play, tuple[str, ...]]] = {}
        self.frames: dict[Mood, list[tuple[str, ...]]] = {}
        self.small_size: tuple[int, int] | None = None
        self.small: dict[Mood, list[tuple[str, ...]]] = {}
        self.orders: dict[Mood, tuple[int, ...]] = {}

    def problem(self, number: int, text: str) -> None:
        self.problems.append(f"line {number}: {text}")

    def parse(self, text: str) -> Figure:
        lines = text.splitlines()
        number = 0
        while number < len(lines):
            line = lines[number].rstrip()
            number += 1
            word = line.split(" ", 1)[0]
            match word:
                case "" | "#":
                    continue
                case "size":
                    self._size(number, line)
                case "palette":
                    self._palette(number, line)
                case "state":
                    self._state(number, line)
                case "order":
                    self._order(number, line)
                case "frame":
                    number = self._frame(number, line, lines, self.size, self.frames)
                case "size2":
                    self._small_size(number, line)
                case "frame2":
                    number = self._frame(number, line, lines, self.small_size, self.small)
                case _:
                    self.problem(
                        number,
                        f"{line!r} is neither size, palette, state, order, frame, size2 nor frame2",
                    )
        return self._figure()

    def _size(self, number: int, line: str) -> None:
        match = re.fullmatch(r"size (\d+)x(\d+)", line)
        width, height = (int(match[1]), int(match[2])) if match else (0, 0)
        if not (1 <= width <= 64 and 2 <= height <= 64) or height % 2:
            self.problem(number, "the size must be WIDTHxHEIGHT, at most 64x64, the height even")
        else:
            self.size = width, height

    def _small_size(self, number: int, line: str) -> None:
        match = re.fullmatch(r"size2 (\d+)x4", line)
        if match is None or not 1 <= int(match[1]) <= 20:
            self.problem(number, "size2 must be WIDTHx4, at most 20x4")
        else:
            self.small_size = int(match[1]), 4

    def _palette(self, number: int, line: str) -> None:
        for entry in line.split()[1:]:
            match = re.fullmatch(r"([a-zA-Z])=\$([\w-]+)", entry)
            if match is None:
                self.problem(number, f"{entry!r} is not letter=$role")
            else:
                self.palette[match[1]] = match[2]

    def _state(self, number: int, line: str) -> None:
        match = _STATE.match(line)
        if match is None or match[1] not in _MOODS or match[3] not in _PLAYS:
            self.problem(number, f"{line!r} is not `state MOOD fps N loop|once|progress [ascii …]`")
            return
        faces = tuple(re.findall(r'"([^"]*)"', match[4]))
        self.headers[Mood(match[1])] = int(match[2]), Play(match[3]), faces
        if int(match[2]) < 1:
            self.problem(number, "fps must be at least 1")

    def _order(self, number: int, line: str) -> None:
        match = re.fullmatch(r"order (\w+)((?: \d+)+)", line)
        if match is None or match[1] not in _MOODS:
            self.problem(number, f"{line!r} is not `order MOOD N N …`")
        else:
            self.orders[Mood(match[1])] = tuple(map(int, match[2].split()))

    def _frame(
        self,
        number: int,
        line: str,
        lines: list[str],
        size: tuple[int, int] | None,
        found: dict[Mood, list[tuple[str, ...]]],
    ) -> int:
        height = size[1] if size else 0
        rows = tuple(row.rstrip() for row in lines[number : number + height])
        match = re.fullmatch(r"(frame2?) (\w+) (\d+)", line)
        if match is None or match[2] not in _MOODS:
            self.problem(number, f"{line!r} is not `{line.split(' ')[0]} MOOD N`")
            return number + height
        frames = found.setdefault(Mood(match[2]), [])
        if int(match[3]) != len(frames):
            self.problem(number, f"{match[1]} {match[3]} of {match[2]} is out of order")
        frames.append(rows)
        self._rows(number, rows, size)
        return number + height

    def _rows(self, number: int, rows: tuple[str, ...], size: tuple[int, int] | None) -> None:
        if size is None:
            self.problem(number, "a frame before the size")
            return
        if len(rows) != size[1]:
            self.problem(number, f"the frame has {len(rows)} rows, not {size[1]}")
        for offset, row in enumerate(rows, start=1):
            if len(row) != size[0]:
                self.problem(number + offset, f"the row is {len(row)} wide, not {size[0]}")
            if unknown := set(row) - set(self.palette) - {"."}:
                self.problem(number + offset, f"{''.join(sorted(unknown))!r} is not in the palette")

    def _figure(self) -> Figure:
        for mood in self.frames.keys() | self.small.keys():
            if mood not in self.headers:
                self.problems.append(f"frames of {mood} without a state line")
        for mood in self.headers:
            if mood not in self.frames:
                self.problems.append(f"state {mood} has no frames")
        for mood, order in self.orders.items():
            if max(order) >= len(self.frames.get(mood, ())):
                self.problems.append(f"order {mood} names a frame that does not exist")
        if Mood.IDLE not in self.headers:
            self.problems.append("the state idle is missing")
        if self.problems or self.size is None:
            found = "; ".join(self.problems or ["no size"])
            raise FigureError(f"{self.name}: {found}.")
        return Figure(
            *self.size, self.palette, {mood: self._state_of(mood) for mood in self.headers}
        )

    def _state_of(self, mood: Mood) -> State:
        fps, play, faces = self.headers[mood]
        frames = self.frames[mood]
        order = self.orders.get(mood, range(len(frames)))
        shown_faces = tuple(faces[i % len(faces)] for i in order) if faces else ()
        small = self.small.get(mood, [])
        if play is Play.PROGRESS:  # spread over the progress, however many there are
            small = (
                [small[i * len(small) // len(order)] for i in range(len(order))] if small else []
            )
        return State(
            fps,
            play,
            shown_faces,
            tuple(frames[i] for i in order),
            tuple(small[i % len(small)] for i in order) if small else (),
        )


def parse_figure(text: str, name: str) -> Figure:
    """Parse and validate a figure.

    Raises:
        FigureError: with all errors in one message.
    """
    return _Parser(name).parse(text)


def load_figure(path: Path) -> Figure:
    """`parse_figure` of a file."""
    return parse_figure(path.read_text(encoding="utf-8"), path.name)
