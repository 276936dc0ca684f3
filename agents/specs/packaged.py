"""The packaged agents, found by their files: each `CATEGORY/KEY.md` is an agent, and nothing else is."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import get_args

from agents.api.agent_spec import AgentSpec, Category
from agents.specs.spec_file import read_spec

FOLDERS: tuple[Path, ...] = tuple(Path(__file__).parent / name for name in get_args(Category))

GATES = ("syntax_audit", "security_audit", "output_verifier")
"""Agents that no plan and no pipeline of a router leaves out."""


@cache
def packaged_files() -> Mapping[str, Path]:
    """The files by key, in the order of the categories, then of the keys. Reads four folders, once."""
    return {path.stem: path for folder in FOLDERS for path in sorted(folder.glob("*.md"))}


@cache
def packaged_agents() -> Mapping[str, AgentSpec]:
    """The agents by key. Reads all files, once (10 ms for 51)."""
    return {key: read_spec(path) for key, path in packaged_files().items()}
