"""Tests of small projects, run in the sandbox with the environments that are found."""

import os
import shutil

import pytest

from agents.project_tests.python_search import Surroundings
from agents.project_tests.run import run_tests
from agents.tools.shell import SHELL, ShellArguments
from agents.tools.tool import ToolContext
from tests.unit.agents.project_tests.conftest import VERSION, make_program, make_real_venv
from tests.unit.agents.sandbox.conftest import MAKERS, sandbox_here

pytestmark = pytest.mark.skipif(
    all(isinstance(sandbox_here(name), str) for name in MAKERS), reason="no sandbox here"
)

PREFIX_TEST = """
import sys
import pytest

def test_prefix():
    assert sys.prefix == {prefix!r}
"""


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "a project"
    folder.mkdir()
    return folder


async def test_the_projects_environment_runs_the_tests(root):
    prefix = str(root / ".venv")
    (root / "test_a.py").write_text(PREFIX_TEST.format(prefix=prefix))
    make_real_venv(root / ".venv")
    results = await run_tests(root, output=root.parent / "output.log")
    assert results.problem == ""
    assert results.passed == {"test_a::test_prefix"}
    assert results.used == (
        "The tests ran with the project's environment .venv, because it lies in the project's folder."
    )
    assert results.output is not None
    assert "1 passed" in results.output.read_text()


async def test_an_environment_elsewhere_behind_links_is_visible(root, tmp_path):
    place = make_real_venv(tmp_path / "kept" / "env-1")
    (tmp_path / "current").symlink_to(place)
    (root / ".venv").symlink_to(tmp_path / "current")
    (root / "test_a.py").write_text(PREFIX_TEST.format(prefix=str(root / ".venv")))
    results = await run_tests(root)
    assert (results.problem, results.failed) == ("", frozenset())
    assert results.passed == {"test_a::test_prefix"}


@pytest.mark.parametrize("way", ["pth", "finder", "src"])
async def test_in_a_copy_the_copy_is_tested_and_not_the_installed_original(way, root, tmp_path):
    folder = make_real_venv(root / ".venv")
    packages = folder / "lib" / VERSION / "site-packages"
    source = root / ("src" if way == "src" else "code")
    (source / "shop").mkdir(parents=True)
    (source / "shop" / "__init__.py").write_text("PRICE = 1\n")
    if way == "pth":
        (packages / "shop.pth").write_text(f"{source}\n")
    if way == "finder":
        mapping = {"shop": str(source / "shop")}
        (packages / "__editable___shop_1_finder.py").write_text(
            f"MAPPING: dict[str, str] = {mapping!r}\n"
        )
    (root / "test_a.py").write_text(
        "import pytest\nimport shop\n\ndef test_price():\n    assert shop.PRICE == 2\n"
    )
    copy = tmp_path / "copy"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".venv"))
    (copy / source.name / "shop" / "__init__.py").write_text("PRICE = 2\n")
    results = await run_tests(copy, origin=root)
    assert results.passed == {"test_a::test_price"}, results
    assert results.command is not None
    again = await run_tests(copy, ["test_a.py"], origin=root, command=results.command)
    assert again.passed == results.passed


async def test_without_pytest_the_tests_of_unittest_run_and_are_named_alike(root):
    make_real_venv(root / ".venv", with_pytest=False)
    (root / "tests").mkdir()
    (root / "tests" / "__init__.py").write_text("")
    (root / "shop.py").write_text("PRICE = 2\n")
    (root / "tests" / "test_a.py").write_text(
        """
import unittest
from shop import PRICE

class Prices(unittest.TestCase):
    def test_right(self):
        self.assertEqual(PRICE, 2)

    def test_wrong(self):
        self.assertEqual(PRICE, 3)

    @unittest.skip("later")
    def test_skipped(self):
        pass

def test_function():
    assert PRICE == 2
"""
    )
    results = await run_tests(root)
    assert results.passed == {"tests.test_a.Prices::test_right", "tests.test_a::test_function"}
    assert results.failed == {"tests.test_a.Prices::test_wrong"}
    make_real_venv(root / "venv")
    shutil.rmtree(root / ".venv")
    again = await run_tests(root)
    assert again.command is not None
    assert again.command.kind == "pytest"
    assert (again.passed, again.failed) == (results.passed, results.failed)


async def test_a_test_that_needs_pytest_is_named_where_only_others_run(root, machine, monkeypatch):
    around = machine()
    monkeypatch.setattr(Surroundings, "here", lambda: around)
    make_real_venv(root / ".venv", with_pytest=False)
    (root / "test_a.py").write_text("def test_a():\n    pass\n")
    (root / "test_b.py").write_text("import pytest\n\ndef test_b():\n    pass\n")
    results = await run_tests(root)
    assert results.passed == {"test_a::test_a"}
    assert results.not_run == ("1 test file needs pytest, which is not installed, first test_b.py.")
    alone = await run_tests(root, ["test_b.py"])
    assert alone.problem.startswith("test_b.py needs pytest.")


async def test_a_package_that_is_not_installed_is_a_problem_and_no_failure(root):
    make_real_venv(root / ".venv")
    (root / "test_a.py").write_text("import pytest\nimport no_such_package\n\ndef test_a(): pass\n")
    results = await run_tests(root)
    assert not results.any
    assert results.problem == (
        "The package no_such_package is not installed in the project's environment .venv: install what "
        "the tests need there."
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\naddopts = --cov=shop -n auto -x\n"),
        ("pyproject.toml", '[tool.pytest.ini_options]\naddopts = ["--no-such-option", "-q"]\n'),
        ("setup.cfg", "[tool:pytest]\naddopts = --nothing-known=1\n"),
        ("tox.ini", "[pytest]\naddopts = -p no_such_plugin\n"),
        ("pytest.ini", "[pytest]\nrequired_plugins = pytest-nothing>=9\n"),
        ("pytest.ini", "[pytest]\nfilterwarnings =\n    error::no_such.Warning\n"),
    ],
)
async def test_options_that_need_missing_plugins_do_not_stop_the_tests(name, text, root):
    make_real_venv(root / ".venv")
    (root / name).write_text(text)
    (root / "test_a.py").write_text(
        "import pytest\n\ndef test_a():\n    assert 0\n\ndef test_b():\n    pass\n"
    )
    results = await run_tests(root)
    assert results.problem == ""
    assert results.passed == {"test_a::test_b"}
    assert results.failed == {"test_a::test_a"}


async def test_a_target_of_make_decides_where_nothing_else_runs(root, monkeypatch, tmp_path):
    make_program(
        tmp_path / "path" / "make",
        '#!/bin/sh\nif [ -f broken ]; then echo "2 failed, 3 passed"; exit 2; fi\n'
        'if [ -f offline ]; then echo "curl: Could not resolve host: x"; exit 2; fi\necho fine\n',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}{os.environ['PATH']}")
    (root / "Makefile").write_text("test:\n\ttrue\n")
    results = await run_tests(root)
    assert results.passed == {"make test"}
    (root / "broken").write_text("")
    failed = await run_tests(root)
    assert failed.failed == {"make test"}
    assert (failed.num_passed, failed.num_failed) == (3, 2)
    (root / "broken").rename(root / "offline")
    unjudged = await run_tests(root)
    assert unjudged.problem == "`make test` ended with 2: curl: Could not resolve host: x"


async def test_a_project_without_tests_has_no_outcome(root):
    (root / "a.py").write_text("")
    results = await run_tests(root)
    assert (results.any, results.problem) == (False, "")


async def test_a_command_of_the_shell_runs_in_the_projects_environment(root):
    make_real_venv(root / ".venv")
    make_program(root / ".venv" / "bin" / "ls", "#!/bin/sh\necho mine\n")
    context = ToolContext(root, artifacts=root.parent / "artifacts")

    async def said(command: str) -> str:
        done = await SHELL.call(ShellArguments(command=command), context)
        return done.text

    assert str(root / ".venv") in await said("python -c 'import sys; print(sys.prefix)'")
    assert str(root / ".venv") in await said(
        "python -c 'import os; print(os.environ[\"VIRTUAL_ENV\"])'"
    )
    # A rule may permit `ls`: the project cannot put its own in its place.
    assert "mine" not in await said("ls")


def test_models_are_not_offered_what_procedures_use():
    assert "keep" not in ShellArguments.model_json_schema()["properties"]
