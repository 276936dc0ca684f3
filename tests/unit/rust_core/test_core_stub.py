"""`engine/_core.pyi` says what the extension has: names, bases, members, parameters, defaults."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import engine
from engine import _core

STUB = ast.parse((Path(engine.__file__).parent / "_core.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
CONSTANTS = {
    node.target.id
    for node in STUB.body
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
}
DOCUMENTED_DUNDERS = {"__new__", "__len__", "__enter__", "__exit__", "__iter__", "__next__"}


def stub_members(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}


def is_property(node: ast.FunctionDef) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list)


def stub_parameters(node: ast.FunctionDef) -> list[tuple[str, str, object]]:
    """(name, kind, default) of each parameter but self and cls."""
    arguments = node.args
    positional = [(item.arg, "positional") for item in arguments.posonlyargs + arguments.args]
    defaults = [inspect.Parameter.empty] * (len(positional) - len(arguments.defaults))
    defaults += [ast.literal_eval(value) for value in arguments.defaults]
    found = [
        (name, kind, default) for (name, kind), default in zip(positional, defaults, strict=True)
    ]
    for item, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        default = inspect.Parameter.empty if value is None else ast.literal_eval(value)
        found.append((item.arg, "keyword", default))
    return [entry for entry in found if entry[0] not in {"self", "cls"}]


def module_parameters(callable_object: object) -> list[tuple[str, str, object]]:
    signature = inspect.signature(callable_object)  # type: ignore[arg-type]
    return [
        (
            parameter.name,
            "keyword" if parameter.kind is inspect.Parameter.KEYWORD_ONLY else "positional",
            parameter.default,
        )
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]


def methods() -> Iterator[tuple[str, str]]:
    for name, node in CLASSES.items():
        for member, item in stub_members(node).items():
            if not is_property(item) and not member.startswith("__"):
                yield name, member


def test_the_module_has_the_names_of_the_stub_and_no_others() -> None:
    public = {name for name in dir(_core) if not name.startswith("_")}
    assert public == CLASSES.keys() | FUNCTIONS.keys() | CONSTANTS


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_members_of_its_stub_and_no_others(name: str) -> None:
    cls, node = getattr(_core, name), CLASSES[name]
    assert [base.__name__ for base in cls.__bases__ if base is not object] == [
        base.id for base in node.bases if isinstance(base, ast.Name)
    ]
    stub = {
        member: is_property(item)
        for member, item in stub_members(node).items()
        if not member.startswith("__")
    }
    module = {
        member: not callable(inspect.getattr_static(cls, member))
        for member in vars(cls)
        if not member.startswith("_")
    }
    assert module == stub


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_made_as_its_stub_says(name: str) -> None:
    cls, members = getattr(_core, name), stub_members(CLASSES[name])
    if issubclass(cls, BaseException):
        return
    maker = members.get("__new__") or members.get("__init__")
    if maker is None:
        with pytest.raises(TypeError, match=r"No constructor|cannot create"):
            cls()
    else:
        assert module_parameters(cls) == stub_parameters(maker)
    for dunder in DOCUMENTED_DUNDERS & members.keys():
        assert hasattr(cls, dunder)


@pytest.mark.parametrize(("name", "member"), methods())
def test_a_method_takes_the_parameters_of_its_stub(name: str, member: str) -> None:
    runtime = getattr(getattr(_core, name), member)
    assert module_parameters(runtime) == stub_parameters(stub_members(CLASSES[name])[member])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_the_parameters_of_its_stub(name: str) -> None:
    assert module_parameters(getattr(_core, name)) == stub_parameters(FUNCTIONS[name])


def public_nodes() -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    yield from CLASSES.items()
    yield from FUNCTIONS.items()
    for name, node in CLASSES.items():
        for member, item in stub_members(node).items():
            if not (member.startswith("__") or is_property(item)):
                yield f"{name}.{member}", item


@pytest.mark.parametrize(("name", "node"), public_nodes())
def test_everything_public_is_documented(name: str, node: ast.ClassDef | ast.FunctionDef) -> None:
    assert ast.get_docstring(node), f"{name} has no docstring"
