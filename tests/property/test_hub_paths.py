"""Paths that pass the check of a hub's listing stay inside the folder they are joined to, on every system."""

import ntpath
import os
import posixpath
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.api.errors import FetchError
from engine.models.hub_path import (
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    path_inside,
    path_problem,
    printable,
)

PIECES = [
    "..",
    ".",
    "/",
    "//",
    "\\",
    "C:",
    "~",
    "$HOME",
    "%TEMP%",
    " ",
    "\0",
    "\n",
    "\u202e",
    "\ud800",
]
paths = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from([*PIECES, "a", "é", "x.gguf", "y" * 100]), max_size=12).map("".join),
    st.lists(st.sampled_from(["..", ".", "", "a", "é", "C:", "x" * 200]), max_size=9).map("/".join),
)


@given(paths)
@example("../x")
@example("a/../../x")
@example("a\\..\\..\\x")
@example("//server/share/x")
@example("C:/x")
@example("a/C:x")
@example("..")
def test_safe_paths_stay_in_their_folder(path):
    if path_problem(path):
        return
    assert posixpath.normpath(f"/folder/{path}") == f"/folder/{path}"
    windows = ntpath.normpath(ntpath.join("D:\\folder", *path.split("/")))
    assert windows == "D:\\folder\\" + path.replace("/", "\\")
    assert not PureWindowsPath(path).anchor
    assert os.fsencode(path).decode() == path
    assert len(path.encode()) <= MAX_PATH_BYTES
    assert all(0 < len(name.encode()) <= MAX_NAME_BYTES for name in PurePosixPath(path).parts)


@given(paths)
def test_a_problem_is_one_line_that_can_be_printed(path):
    problem = path_problem(path)
    assert problem.isprintable()
    assert printable(path).isprintable()
    assert len(printable(path)) <= 101


@given(
    st.lists(
        st.text(
            st.characters(categories=["L", "N"], exclude_characters="\\:"), min_size=1, max_size=20
        ),
        min_size=1,
        max_size=5,
    )
)
def test_folders_of_letters_and_digits_are_safe(names):
    assert path_problem("/".join(names)) == ""


@given(paths)
def test_the_place_is_below_the_folder_or_refused(tmp_path_factory, path):
    folder = Path(tmp_path_factory.getbasetemp(), "folder")
    if path_problem(path):
        with pytest.raises(FetchError) as caught:
            path_inside(folder, path)
        assert str(caught.value).isprintable()
        return
    place = path_inside(folder, path)
    assert place.resolve().is_relative_to(folder.resolve())
    assert place.resolve() != folder.resolve()


@pytest.mark.parametrize("link", ["models", "models/Q4", "models/Q4/x.gguf"])
def test_symbolic_links_out_of_the_folder_are_refused(tmp_path, link):
    folder = tmp_path / "folder"
    (folder / link).parent.mkdir(parents=True)
    (folder / link).symlink_to(tmp_path / "outside")
    with pytest.raises(FetchError, match="symbolic link leads out"):
        path_inside(folder, "models/Q4/x.gguf")


def test_links_inside_of_the_folder_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert path_inside(tmp_path, "link/x.gguf") == tmp_path / "link" / "x.gguf"
