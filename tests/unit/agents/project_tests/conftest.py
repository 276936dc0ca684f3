"""Projects, environments that are only files, and a machine on which nothing is installed."""

import importlib
import os
import sys
from pathlib import Path

import pytest

from agents.project_tests.python_search import Surroundings

VERSION = f"python3.{sys.version_info.minor}"


def make_program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def make_venv(folder: Path, *modules: str, real: bool = False) -> Path:
    """A virtual environment with packages that exist by name; with `real` its interpreter runs."""
    (folder / "bin").mkdir(parents=True)
    base = Path(sys.base_prefix) / "bin"
    (folder / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3\n")
    python = folder / "bin" / "python"
    if real:
        python.symlink_to(base / VERSION)
    else:
        make_program(python)
    packages = folder / "lib" / VERSION / "site-packages"
    packages.mkdir(parents=True)
    for module in modules:
        (packages / module).mkdir()
        (packages / module / "__init__.py").write_text("")
    return folder


PYTEST_PARTS = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")


def make_real_venv(folder: Path, *, with_pytest: bool = True) -> Path:
    """An environment that runs; pytest in it is this one's, by links."""
    make_venv(folder, real=True)
    for name in PYTEST_PARTS if with_pytest else ():
        module = importlib.import_module(name)
        source = Path(module.__file__ or "").parent
        (folder / "lib" / VERSION / "site-packages" / name).symlink_to(source)
    return folder


@pytest.fixture
def project(tmp_path):
    """A project with a test that needs pytest."""
    root = tmp_path / "repo" / "shop"
    (root / "tests").mkdir(parents=True)
    (root / "shop.py").write_text("def price():\n    return 2\n")
    (root / "tests" / "test_shop.py").write_text(
        "import pytest\nfrom shop import price\n\ndef test_price():\n    assert price() == 2\n"
    )
    return root


@pytest.fixture
def machine(tmp_path):
    """Makes the surroundings: variables, and names of programs on PATH; Pravāha's own has no pytest."""
    home = tmp_path / "home"
    own = tmp_path / "own"
    make_program(own / "bin" / "python")
    home.mkdir()

    def made(*programs: str, **environ: str) -> Surroundings:
        for name in programs:
            make_program(tmp_path / "path" / name)
        path = os.pathsep.join([str(own / "bin"), str(tmp_path / "path")])
        return Surroundings(
            {"PATH": path, **environ}, home, (str(own),), str(own / "bin" / "python")
        )

    return made
