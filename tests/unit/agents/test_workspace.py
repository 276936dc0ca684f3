"""Which files a workspace has, and that it never reads outside its root."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.api.errors import InvalidTask
from agents.workspace.languages import language_of
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import open_workspace
from engine.retrieval.parsing.grammars import has_grammar


def test_files_are_found_and_caches_left_out(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = 1\n")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "b.js").write_text("1")
    assert [file.path for file in open_workspace([tmp_path])] == ["src/a.py"]


def test_a_repository_follows_gitignore(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("secret.txt\n")
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "a.py").write_text("x = 1\n")
    assert [file.path for file in open_workspace([tmp_path])] == [".gitignore", "a.py"]


def test_links_binaries_and_large_files_are_listed_with_a_reason(tmp_path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "binary").write_bytes(b"\0\1")
    (tmp_path / "large.txt").write_bytes(b"x" * 1_000_001)
    os.mkfifo(tmp_path / "pipe")
    workspace = open_workspace([tmp_path])
    reasons = {one.path: one.reason for one in workspace.skipped}
    assert reasons["link"] == "symbolic link"
    assert reasons["binary"] == "binary"
    assert reasons["large.txt"] == "larger than 1,000 kB"
    assert reasons["pipe"] == "no regular file"
    assert not workspace.files


def test_the_root_of_several_paths_is_their_common_folder(tmp_path):
    for name in ("a/x.py", "b/y.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1\n")
    workspace = open_workspace([tmp_path / "a", tmp_path / "b" / "y.py"])
    assert workspace.root == tmp_path
    assert [file.path for file in workspace] == ["a/x.py", "b/y.py"]


def test_a_missing_path_is_refused(tmp_path):
    with pytest.raises(InvalidTask, match="no file or folder"):
        open_workspace([tmp_path / "no"])


@pytest.mark.parametrize(
    ("path", "first", "language"),
    [
        ("a/b.py", "", "python"),
        ("Dockerfile", "", "dockerfile"),
        ("x.dockerfile", "", "dockerfile"),
        (".env.local", "", "dotenv"),
        ("run", "#!/bin/sh", "bash"),
        ("run", "#!/usr/bin/env python3", "python"),
        ("a.TS", "", "typescript"),
        ("unknown", "", None),
    ],
)
def test_the_language_is_told_by_name_or_first_line(path, first, language):
    assert language_of(path, first) == language


@pytest.mark.parametrize(
    ("path", "text", "root"),
    [
        ("a.py", "x = 1", "module"),
        ("a.js", "let x", "program"),
        ("a.ts", "let x: number", "program"),
        ("a.tsx", "<a/>", "program"),
        ("a.go", "package a", "source_file"),
        ("a.rs", "fn a() {}", "source_file"),
        ("a.java", "class A {}", "program"),
        ("a.c", "int a;", "translation_unit"),
        ("a.html", "<p>x</p>", "document"),
        ("a.css", "a{}", "stylesheet"),
        ("a.sh", "ls", "program"),
        ("a.json", "{}", "document"),
        ("a.yaml", "a: 1", "stream"),
        ("a.toml", "a = 1", "document"),
    ],
)
def test_every_grammar_parses(path, text, root):
    file = SourceFile(path, text.encode())
    assert has_grammar(file.language)
    assert file.tree.root_node.type == root
    assert not file.tree.root_node.has_error


@given(st.binary(max_size=300))
def test_any_bytes_are_a_file(data):
    file = SourceFile("a.py", data)
    assert isinstance(file.text, str)
    assert len(file.lines) == file.text.count("\n") + 1
    assert file.python is None or file.python.body is not None
    assert file.tree is not None


def test_quotes_are_lines_without_the_margin():
    file = SourceFile("a.py", b"if x:\r\n    y = 1\n")
    assert file.quote(2) == "y = 1"
    assert file.quote(1, 2) == "if x:\ny = 1"
    assert file.quote(9) == ""
    assert Path(file.path).suffix == ".py"
