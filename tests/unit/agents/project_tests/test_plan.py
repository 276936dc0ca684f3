"""Which command runs a project's tests: the order of environments, broken ones, other languages, advice."""

import os
from pathlib import Path

import pytest

from agents.project_tests.plan import environments_for, find_test_plan
from tests.unit.agents.project_tests.conftest import VERSION, make_program, make_venv


def first(root, around):
    plan = find_test_plan(root, around)
    assert plan.commands, plan.missing
    return plan.commands[0]


def python_of(command):
    return command.words[0]


@pytest.mark.parametrize("name", [".venv", "venv", "env", ".virtualenv"])
def test_an_environment_in_the_project_is_taken(name, project, machine):
    make_venv(project / name, "pytest")
    command = first(project, machine())
    assert python_of(command) == f"./{name}/bin/python"
    assert command.name == f"the project's environment {name}"
    assert command.why == "it lies in the project's folder"
    assert command.variables["VIRTUAL_ENV"] == str(project / name)


def test_the_projects_environment_comes_before_the_activated_one(project, machine, tmp_path):
    other = make_venv(tmp_path / "other", "pytest")
    around = machine(VIRTUAL_ENV=str(other))
    assert python_of(first(project, around)) == str(other / "bin" / "python")
    make_venv(project / ".venv", "pytest")
    assert python_of(first(project, around)) == "./.venv/bin/python"


def test_pravahas_own_environment_is_no_activated_one(project, machine, tmp_path):
    make_venv(tmp_path / "own2", "pytest")
    around = machine()
    own = Path(around.own[0])
    (own / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (own / "lib" / VERSION / "site-packages" / "pytest").mkdir(parents=True)
    (own / "lib" / VERSION / "site-packages" / "pytest" / "__init__.py").write_text("")
    activated = machine(VIRTUAL_ENV=str(own))
    commands = find_test_plan(project, activated).commands
    assert [one.name for one in commands] == ["Pravāha's own interpreter"]


def test_an_environment_without_pytest_is_passed_over_for_one_with_it(project, machine, tmp_path):
    make_venv(project / ".venv")
    other = make_venv(tmp_path / "other", "pytest")
    command = first(project, machine(VIRTUAL_ENV=str(other)))
    assert python_of(command) == str(other / "bin" / "python")
    assert command.why == ("VIRTUAL_ENV names it; the project's environment .venv has no pytest")


def test_without_pytest_the_person_is_told_how_to_install_it(project, machine):
    make_venv(project / ".venv")
    plan = find_test_plan(project, machine())
    assert plan.commands == ()
    python = project / ".venv" / "bin" / "python"
    assert plan.missing == (
        f"The project's environment .venv has no pytest: run `{python} -m pip install pytest`."
    )


def test_tests_of_unittest_run_without_pytest(project, machine):
    (project / "tests" / "test_shop.py").write_text(
        "import unittest\n\nclass Prices(unittest.TestCase):\n    def test_x(self):\n        pass\n"
    )
    make_venv(project / ".venv")
    command = first(project, machine())
    assert command.kind == "unittest"
    assert python_of(command) == "./.venv/bin/python"
    assert command.files == ("tests/test_shop.py",)
    assert command.why.endswith("it has no pytest, which these tests do not need")


def test_a_broken_link_is_named_and_the_next_is_taken(project, machine, tmp_path):
    folder = make_venv(project / ".venv", "pytest")
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to(tmp_path / "gone" / "python3")
    plan = find_test_plan(project, machine())
    assert plan.commands == ()
    assert "points to" in plan.missing
    assert "which is gone. Make it again." in plan.missing
    make_venv(project / "venv", "pytest")
    assert python_of(first(project, machine())) == "./venv/bin/python"


def test_an_environment_of_windows_is_named(project, machine):
    make_venv(project / ".venv", "pytest")
    (project / ".venv" / "bin").rename(project / ".venv" / "Scripts")
    (project / ".venv" / "Scripts" / "python").rename(project / ".venv" / "Scripts" / "python.exe")
    plan = find_test_plan(project, machine())
    assert "was made on Windows and does not run here" in plan.missing


def test_scripts_with_an_interpreter_that_runs_is_taken(project, machine):
    make_venv(project / ".venv", "pytest")
    (project / ".venv" / "bin").rename(project / ".venv" / "Scripts")
    assert python_of(first(project, machine())) == "./.venv/Scripts/python"


def test_in_a_repository_the_environment_of_a_folder_above_is_found(project, machine):
    repository = project.parent
    make_venv(repository / ".venv", "pytest")
    assert find_test_plan(project, machine()).commands == ()  # not known to belong together
    (repository / ".git").mkdir()
    command = first(project, machine())
    assert python_of(command) == str(repository / ".venv" / "bin" / "python")
    assert command.readable[0] == repository / ".venv"


def test_uv_names_its_environment(project, machine):
    (project / "uv.lock").write_text("")
    make_venv(project / "elsewhere", "pytest")
    around = machine(UV_PROJECT_ENVIRONMENT="elsewhere")
    assert first(project, around).name == "uv's environment elsewhere"


def test_poetrys_environment_is_found_by_the_projects_path(project, machine):
    (project / "pyproject.toml").write_text('[tool.poetry]\nname = "My Shop"\n')
    around = machine()
    import base64
    import hashlib

    digest = base64.urlsafe_b64encode(hashlib.sha256(str(project).encode()).digest()).decode()[:8]
    place = around.home / ".cache" / "pypoetry" / "virtualenvs"
    make_venv(place / "my_shop-AAAAAAAA-py3.11", "pytest")
    mine = make_venv(place / f"my_shop-{digest}-py3.11", "pytest")
    command = first(project, around)
    assert python_of(command) == str(mine / "bin" / "python")
    assert command.why == "poetry keeps it for this project"


def test_pipenvs_environment_is_found_by_the_file_it_keeps(project, machine):
    (project / "Pipfile").write_text("")
    around = machine()
    place = around.home / ".local" / "share" / "virtualenvs"
    mine = make_venv(place / "shop-x", "pytest")
    other = make_venv(place / "other-x", "pytest")
    (mine / ".project").write_text(f"{project}\n")
    (other / ".project").write_text("/elsewhere\n")
    command = first(project, around)
    assert python_of(command) == str(mine / "bin" / "python")
    assert command.name.startswith("pipenv's environment")


def test_pdm_names_its_interpreter(project, machine, tmp_path):
    mine = make_venv(tmp_path / "pdm", "pytest")
    (project / ".pdm-python").write_text(f"{mine}/bin/python\n")
    assert first(project, machine()).why == ".pdm-python names it"


def test_hatchs_environment_of_tests_comes_before_the_default(project, machine):
    (project / "pyproject.toml").write_text(
        '[project]\nname = "shop"\n[tool.hatch.envs.default]\ndependencies = ["pytest"]\n'
    )
    around = machine()
    import base64
    import hashlib

    digest = base64.urlsafe_b64encode(hashlib.sha256(str(project).encode()).digest()).decode()[:8]
    place = around.home / ".local" / "share" / "hatch" / "env" / "virtual" / "shop" / digest
    make_venv(place / "shop", "pytest")
    mine = make_venv(place / "hatch-test.py3.11", "pytest")
    assert python_of(first(project, around)) == str(mine / "bin" / "python")


def test_condas_environment_is_found_by_its_name(project, machine):
    (project / "environment.yml").write_text("name: shop-env\ndependencies:\n  - pytest\n")
    around = machine()
    mine = make_venv(around.home / "miniconda3" / "envs" / "shop-env", "pytest")
    (mine / "pyvenv.cfg").unlink()
    (mine / "conda-meta").mkdir()
    command = first(project, around)
    assert python_of(command) == str(mine / "bin" / "python")
    assert command.variables["CONDA_PREFIX"] == str(mine)
    assert mine in command.readable


def test_pyenvs_version_is_found(project, machine):
    (project / ".python-version").write_text("3.11\n")
    around = machine()
    version = around.home / ".pyenv" / "versions" / "3.11.9"
    make_program(version / "bin" / "python")
    library = version / "lib" / "python3.11"
    (library / "site-packages" / "pytest").mkdir(parents=True)
    (library / "site-packages" / "pytest" / "__init__.py").write_text("")
    (library / "os.py").write_text("")
    command = first(project, around)
    assert python_of(command) == str(version / "bin" / "python")


@pytest.mark.parametrize("tool", ["tox", "nox"])
def test_environments_of_tox_and_nox_are_taken(tool, project, machine):
    make_venv(project / f".{tool}" / "lint")
    make_venv(project / f".{tool}" / "py311", "pytest")
    assert first(project, machine()).name == f"{tool}'s environment .{tool}/py311"


def test_the_first_python_on_path_is_taken_and_a_shim_is_resolved(project, machine, tmp_path):
    around = machine()
    version = around.home / ".pyenv" / "versions" / "3.12.1"
    make_program(version / "bin" / "python")
    library = version / "lib" / "python3.12"
    (library / "site-packages" / "pytest").mkdir(parents=True)
    (library / "site-packages" / "pytest" / "__init__.py").write_text("")
    (library / "os.py").write_text("")
    (around.home / ".pyenv" / "version").write_text("3.12.1\n")
    shims = around.home / ".pyenv" / "shims"
    make_program(shims / "python")
    around = machine(PATH=f"{around.own[0]}/bin{os.pathsep}{shims}")
    command = first(project, around)
    assert python_of(command) == str(version / "bin" / "python")
    assert command.why == "it is the first on PATH"


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("uv.lock", "uv sync"),
        ("poetry.lock", "poetry install"),
        ("pdm.lock", "pdm install"),
        ("Pipfile", "pipenv install --dev"),
        ("environment.yml", "conda env create -f environment.yml"),
        ("tox.ini", "tox run --notest"),
        ("noxfile.py", "nox --install-only"),
        ("setup.py", "python3 -m venv .venv && .venv/bin/python -m pip install pytest"),
    ],
)
def test_what_is_missing_is_one_sentence_with_the_command(file, command, project, machine):
    (project / file).write_text("")
    plan = find_test_plan(project, machine())
    assert plan.commands == ()
    assert f"run `{command}` in {project}." in plan.missing


def test_a_project_cannot_open_a_folder_of_the_user_by_links(project, machine):
    around = machine()
    secret = around.home / "secret"
    make_program(secret / "bin" / "python")
    (project / ".venv").symlink_to(secret)
    assert find_test_plan(project, around).commands == ()
    folder = make_venv(project / "venv", "pytest")
    (folder / "pyvenv.cfg").write_text(f"home = {secret / 'bin'}\n")
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to(secret / "bin" / "python")
    command = first(project, around)
    assert [path for path in command.readable if path.is_relative_to(secret)] == []


@pytest.mark.parametrize(
    ("files", "programs", "line"),
    [
        ({"Cargo.toml": ""}, ["cargo"], "cargo test --offline --no-fail-fast"),
        ({"go.mod": "", "a_test.go": ""}, ["go"], "go test ./..."),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, ["npm"], "npm test"),
        (
            {"package.json": '{"scripts": {"test": "x"}}', "pnpm-lock.yaml": ""},
            ["pnpm"],
            "pnpm test",
        ),
        ({"package.json": '{"scripts": {"test": "x"}}', "yarn.lock": ""}, ["yarn"], "yarn test"),
        ({"package.json": '{"scripts": {"test": "x"}}', "bun.lock": ""}, ["bun"], "bun run test"),
        (
            {"package.json": '{"scripts": {"test": "x"}, "packageManager": "pnpm@9.1.0"}'},
            ["pnpm"],
            "pnpm test",
        ),
        ({"Makefile": "all:\n\ttrue\n\ntest: all\n\ttrue\n"}, ["make"], "make test"),
        ({"Makefile": "check:\n\ttrue\n"}, ["make"], "make check"),
        ({"justfile": "test *args:\n  true\n"}, ["just"], "just test"),
    ],
)
def test_other_languages_have_their_commands(files, programs, line, tmp_path, machine):
    root = tmp_path / "thing"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    assert first(root, machine(*programs)).line == line
    plan = find_test_plan(root, machine(PATH="/nowhere"))
    assert f"{programs[0]} is not installed" in plan.missing


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        {"package.json": "[1"},
        {"Makefile": "test := 3\n"},
        {"testing.py": "", "go.mod": ""},
        {"tests.py": "VALUE = 1\n"},
    ],
)
def test_what_has_no_tests_is_said_to_have_none(files, tmp_path, machine):
    root = tmp_path / "thing"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    plan = find_test_plan(root, machine("npm", "make", "go"))
    assert plan.missing == "The project has no tests."


def test_packages_of_node_that_are_not_installed_are_named(tmp_path, machine):
    (tmp_path / "package.json").write_text(
        '{"scripts": {"test": "vitest"}, "devDependencies": {"vitest": "1"}}'
    )
    plan = find_test_plan(tmp_path, machine("npm"))
    assert "run `npm install`" in plan.missing
    (tmp_path / "node_modules").mkdir()
    command = find_test_plan(tmp_path, machine("npm")).commands[0]
    assert command.variables["CI"] == "1"


def test_a_target_runs_in_the_projects_environment(project, machine):
    make_venv(project / ".venv", "pytest")
    (project / "Makefile").write_text("test:\n\tpytest\n")
    commands = find_test_plan(project, machine("make")).commands
    assert [one.line.split()[0] for one in commands] == ["./.venv/bin/python", "make"]
    assert commands[1].programs[0] == project / ".venv" / "bin"


def test_any_command_gets_the_projects_environment_but_no_other(project, machine, tmp_path):
    other = make_venv(tmp_path / "other", "pytest")
    around = machine(PATH=f"{other}/bin")
    assert environments_for(project, "python", around) == []
    make_venv(project / ".venv")
    (mine,) = environments_for(project, "python", around)
    assert mine.folder == project / ".venv"
    both = environments_for(project, f"{other}/bin/python", around)
    assert [one.folder for one in both] == [project / ".venv", other]


def test_a_repository_of_several_projects_is_told_to_name_one(project, machine, tmp_path):
    other = make_venv(tmp_path / "other", "pytest")
    make_venv(project / ".venv", "pytest")
    plan = find_test_plan(project.parent, machine(PATH=f"{other}/bin"))
    assert plan.missing == (
        "Tests below shop have an environment of their own there: give that folder."
    )
