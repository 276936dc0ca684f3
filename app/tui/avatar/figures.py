"""The figures by name: ours in this folder, and the user's own, which override them."""

from collections.abc import Collection, Iterable
from pathlib import Path

from app.tui.avatar.figure import FOLDER, Figure, FigureError, load_figure

DEFAULT = "bindu"
OFF = "off"


def figure_files(folders: Iterable[Path]) -> dict[str, Path]:
    """Name → file of all figures; later folders override earlier ones."""
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.txt"))}


def choose_figure(
    name: str, roles: Collection[str], own_folder: Path | None
) -> tuple[Figure, str | None]:
    """The figure of this name, and one sentence if ours is shown because it cannot be.

    Args:
        name: of a file, without its ending; `off` is taken for ours, which is then not displayed.
        roles: the theme variables that a palette may name.
        own_folder: the user's own figures.
    """
    ours = load_figure(FOLDER / f"{DEFAULT}.txt")
    if name == OFF:
        return ours, None
    files = figure_files([FOLDER, *([own_folder] if own_folder else [])])
    if name not in files:
        names = ", ".join([*sorted(files), OFF])
        return ours, f"There is no avatar {name}: choose one of {names}."
    try:
        figure = load_figure(files[name])
        unknown = sorted(set(figure.palette.values()) - set(roles))
        if unknown:
            raise FigureError(f"{files[name].name}: no theme has the role {', '.join(unknown)}.")
    except (OSError, UnicodeDecodeError, FigureError) as error:
        return ours, f"The avatar {name} cannot be shown: {str(error).rstrip('.')}."
    return figure, None
