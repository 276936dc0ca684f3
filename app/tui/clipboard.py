"""Copies text to the clipboard by the method that suits the environment.

Over ssh only the terminal can reach the user's clipboard, through OSC 52. Inside tmux the tmux buffer is
set too, because tmux may drop OSC 52. On a local terminal a native tool is the most reliable.
"""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_NATIVE = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    (None, ("pbcopy",)),
)
_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class CopyPath:
    """A method of copying.

    Attributes:
        name: shown to the user, such as `xclip` or `OSC 52`.
        command: program that reads the text on stdin, or None.
        osc52: also write the terminal's clipboard sequence.
    """

    name: str
    command: tuple[str, ...] | None
    osc52: bool


def choose_path(
    environ: Mapping[str, str], which: Callable[[str], str | None] = shutil.which
) -> CopyPath:
    """The most reliable method in this environment."""
    if environ.get("TMUX") and which("tmux"):
        return CopyPath(
            "the tmux buffer and OSC 52", ("tmux", "load-buffer", "-w", "-"), osc52=True
        )
    if not environ.get("SSH_TTY") and not environ.get("SSH_CONNECTION"):
        for variable, command in _NATIVE:
            if (variable is None or environ.get(variable)) and which(command[0]):
                return CopyPath(command[0], command, osc52=False)
    return CopyPath("OSC 52", None, osc52=True)


def copy(text: str, path: CopyPath, write_osc52: Callable[[str], None]) -> str:
    """Copy `text`; the name of the method that was used.

    If the command fails or times out, OSC 52 is used.
    """
    name = path.name
    osc52 = path.osc52
    if path.command is not None:
        try:
            subprocess.run(
                path.command,
                input=text.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            name, osc52 = f"OSC 52 ({path.command[0]} failed)", True
    if osc52:
        write_osc52(text)
    return name
