"""What is installed is what was chosen: exact versions of known registries, of nothing else."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKED = [
    line.split("#")[0].strip()
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line.split("#")[0].strip()
]


NOT_LOCKED = {"pip", "rapidocr"}
"""`pip` installs the others; the extra `ocr` is not among what `make` installs."""


def normal(name):
    """PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements):
    return {normal(re.match(r"[\w.-]+", one).group()) for one in requirements}


def test_every_version_is_exact():
    inexact = [one for one in LOCKED if not re.fullmatch(r"[\w.-]+==[\w.+!-]+(\s*;.*)?", one)]
    assert inexact == []


def test_every_dependency_is_locked():
    optional = PROJECT["project"]["optional-dependencies"]
    required = [
        *PROJECT["project"]["dependencies"],
        *(one for group in optional.values() for one in group),
    ]
    assert names(required) - names(LOCKED) == NOT_LOCKED


def test_every_dependency_has_an_upper_bound():
    open_ended = [
        one
        for one in PROJECT["project"]["dependencies"]
        if not one.startswith("pip>=") and "==" not in one and not re.search(r"<\s*\d", one)
    ]
    assert open_ended == []


def test_crates_come_from_the_registry_with_their_checksum():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    foreign = [one for one in lock["package"] if "source" in one]
    assert len(foreign) > 10
    for one in foreign:
        assert one["source"].startswith("registry+https://"), one["name"]
        assert re.fullmatch("[0-9a-f]{64}", one["checksum"]), one["name"]


def test_nothing_is_taken_from_a_repository_or_an_address():
    text = (ROOT / "pyproject.toml").read_text() + "\n".join(LOCKED)
    for manifest in ROOT.glob("rust_core/*/Cargo.toml"):
        text += manifest.read_text()
    assert not re.search(r"git\s*=|git\+|@\s*(?:https?|file):|--(?:extra-)?index-url", text)
