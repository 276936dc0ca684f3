"""No byte from elsewhere is turned into code: pickle and its like are nowhere in the program."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = sorted(
    path for folder in ("app", "engine", "agents") for path in (ROOT / folder).rglob("*.py")
)
MODULES = {
    "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "pickle", "shelve", "multiprocessing",
}  # fmt: skip
"""Modules that read code from bytes; `multiprocessing` pickles what its pipes and queues carry."""
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {
    ("torch", "load"), ("yaml", "load"), ("yaml", "unsafe_load"), ("yaml", "full_load"),
    ("numpy", "load"), ("np", "load"),
}  # fmt: skip
ALLOWED = {
    ("agents/api/data_file.py", "yaml.load"): "with a safe loader",
    ("agents/detectors/audit/documents/routes.py", "yaml.load"): "with a safe loader",
    ("agents/detectors/audit/syntax/python_errors.py", "compile"): "for its errors; never executed",
    ("agents/specs/spec_file.py", "yaml.load"): "with a safe loader",
    ("agents/width/checks/parses.py", "compile"): "for its errors; never executed",
    ("agents/width/probe.py", "compile"): "a candidate, in the sandbox",
    ("agents/width/probe.py", "eval"): "calls of a candidate, in the sandbox",
    ("agents/width/probe.py", "exec"): "a candidate, in the sandbox",
    ("app/tui/themes.py", "yaml.load"): "with a safe loader",
    ("agents/procedures/audit/reproducers/source_checks.py", "compile"): "checks of our own table",
    ("agents/procedures/audit/reproducers/source_checks.py", "eval"): "checks of our own table",
    ("app/server/process/answered_file.py", "np.load"): "with allow_pickle=False, tested below",
}
"""What is left, with its reason."""


def found_in(tree):
    """The names of everything of the lists above that a module uses."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names if one.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in MODULES:
                yield module
            case ast.ImportFrom(module="concurrent.futures", names=names):
                yield from (one.name for one in names if one.name == "ProcessPoolExecutor")
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                if (module, name) in METHODS:
                    yield f"{module}.{name}"
            case ast.keyword(arg="allow_pickle" | "trust_remote_code" as name, value=value):
                if not (isinstance(value, ast.Constant) and value.value is False):
                    yield name


def test_the_source_unpickles_and_evaluates_nothing():
    assert len(SOURCES) > 500
    used = {
        (str(path.relative_to(ROOT)), name)
        for path in SOURCES
        for name in found_in(ast.parse(path.read_bytes()))
    }
    assert used - set(ALLOWED) == set()
    assert set(ALLOWED) - used == set()  # the list only shrinks


def test_arrays_are_read_without_pickle():
    tree = ast.parse((ROOT / "app/server/process/answered_file.py").read_bytes())
    loads = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "load"
    ]
    assert len(loads) == 1
    assert [(one.arg, one.value.value) for one in loads[0].keywords] == [("allow_pickle", False)]


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import multiprocessing.connection",
        "from concurrent.futures import ProcessPoolExecutor",
        "eval('1')",
        "torch.load(path)",
        "yaml.load(text)",
        "AutoModel.from_pretrained(path, trust_remote_code=True)",
    ],
)
def test_the_test_finds_them(source):
    assert list(found_in(ast.parse(source)))
