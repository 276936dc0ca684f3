import os
from pathlib import Path

import pytest

from engine.api.errors import InvalidRequest
from engine.retrieval.indexing.walking import (
    absolute_pattern,
    find_all_files,
    find_files,
    watched_folder,
)
from engine.retrieval.store.records import Source


@pytest.fixture
def tree(tmp_path) -> Path:
    root = tmp_path / "tree"
    for name in (
        "a.md",
        "b.txt",
        "sub/c.md",
        "sub/deep/d.md",
        "build/out.md",
        ".hidden/e.md",
        ".f.md",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def names(root: Path, **options) -> list[str]:
    pattern = options.pop("pattern", str(root))
    found = find_files(Source(pattern, **options))
    return [os.path.relpath(one.path, root) for one in found]


def test_all_files_of_a_folder_but_hidden_ones_in_order(tree):
    assert names(tree) == ["a.md", "b.txt", "build/out.md", "sub/c.md", "sub/deep/d.md"]


def test_a_gitignore_counts_for_its_folder_and_those_below(tree):
    (tree / ".gitignore").write_text("/build/\n*.txt\n")
    (tree / "sub" / ".gitignore").write_text("deep/*\n!deep/d.md\n*.md\n!c.md\n")

    assert names(tree) == ["a.md", "sub/c.md"]


def test_a_gitignore_above_the_folder_counts_too(tree):
    (tree / ".gitignore").write_text("d.md\n")

    assert names(tree, pattern=str(tree / "sub")) == ["sub/c.md"]


def test_a_path_that_is_named_is_taken_although_it_is_ignored_or_hidden(tree):
    (tree / ".gitignore").write_text("a.md\n")

    assert names(tree, pattern=str(tree / "a.md")) == ["a.md"]
    assert names(tree, pattern=str(tree / ".f.md")) == [".f.md"]


def test_excluded_patterns_are_as_in_a_gitignore(tree):
    assert names(tree, exclude=("build/", "*.txt", "sub/deep/**")) == ["a.md", "sub/c.md"]


def test_a_malformed_pattern_is_named(tree):
    with pytest.raises(InvalidRequest, match=r"The pattern \{a cannot be excluded"):
        names(tree, exclude=("{a",))


def test_removed_paths_are_left_out(tree):
    removed = (str(tree / "sub"), str(tree / "a.md"))

    assert names(tree, removed=removed) == ["b.txt", "build/out.md"]


def test_a_glob_pattern_finds_files_and_folders(tree):
    assert names(tree, pattern=str(tree / "*.md")) == ["a.md"]
    assert names(tree, pattern=str(tree / "**" / "*.md")) == [
        "a.md", "build/out.md", "sub/c.md", "sub/deep/d.md",
    ]  # fmt: skip
    assert names(tree, pattern=str(tree / "s*")) == ["sub/c.md", "sub/deep/d.md"]


def test_a_file_named_like_a_pattern_is_that_file(tree):
    (tree / "x[1].md").write_text("x")

    assert names(tree, pattern=str(tree / "x[1].md")) == ["x[1].md"]


def test_links_in_folders_are_not_followed_so_cycles_end(tree):
    (tree / "sub" / "up").symlink_to(tree)
    (tree / "self").symlink_to("self")
    (tree / "link.md").symlink_to(tree / "a.md")

    assert names(tree) == ["a.md", "b.txt", "build/out.md", "sub/c.md", "sub/deep/d.md"]
    assert names(tree, pattern=str(tree / "link.md")) == ["link.md"]
    assert names(tree, pattern=str(tree / "self")) == []


def test_pipes_are_left_out(tree):
    os.mkfifo(tree / "pipe")

    assert "pipe" not in names(tree)


def test_of_two_sources_with_a_file_the_last_counts(tree):
    sources = [
        Source(str(tree), attributes={"n": 1}),
        Source(str(tree / "a.md"), attributes={"n": 2}),
    ]

    found = {
        os.path.basename(one.path): one.source.attributes["n"] for one in find_all_files(sources)
    }

    assert found["a.md"] == 2
    assert found["b.txt"] == 1


def test_sizes_and_times_are_those_of_the_file(tree):
    (only,) = find_files(Source(str(tree / "a.md")))

    status = (tree / "a.md").stat()
    assert (only.size, only.mtime_ns) == (status.st_size, status.st_mtime_ns)


def test_patterns_do_not_depend_on_the_working_directory(tree, monkeypatch):
    monkeypatch.chdir(tree)

    assert absolute_pattern("sub/../*.md") == str(tree / "*.md")


def test_the_watched_folder_holds_all_files_of_a_source(tree):
    assert watched_folder(str(tree / "sub")) == str(tree / "sub")
    assert watched_folder(str(tree / "a.md")) == str(tree)
    assert watched_folder(str(tree / "**" / "x*" / "*.md")) == str(tree)
