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


def public_methods() -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """(class, method, stub) of every public method that is no property."""
    for name, node in CLASSES.items():
        for member, item in stub_members(node).items():
            if not is_property(item) and not member.startswith("__"):
                yield name, member, item


def class_shape(cls: type) -> tuple[list[str], dict[str, bool]]:
    """Bases of a class, and for each public member whether it is a property."""
    return [base.__name__ for base in cls.__bases__ if base is not object], {
        member: not callable(inspect.getattr_static(cls, member))
        for member in vars(cls)
        if not member.startswith("_")
    }


def stub_shape(node: ast.ClassDef) -> tuple[list[str], dict[str, bool]]:
    return [base.id for base in node.bases if isinstance(base, ast.Name)], {
        member: is_property(item)
        for member, item in stub_members(node).items()
        if not member.startswith("__")
    }


def test_the_module_has_the_names_of_the_stub_and_no_others() -> None:
    public = {name for name in dir(_core) if not name.startswith("_")}
    assert public == CLASSES.keys() | FUNCTIONS.keys() | CONSTANTS


def test_classes_have_the_members_of_their_stubs_and_no_others() -> None:
    assert {name: class_shape(getattr(_core, name)) for name in CLASSES} == {
        name: stub_shape(node) for name, node in CLASSES.items()
    }


def test_classes_are_constructed_as_their_stubs_say() -> None:
    module, stub = {}, {}
    for name, node in CLASSES.items():
        cls, members = getattr(_core, name), stub_members(node)
        if issubclass(cls, BaseException):
            continue
        maker = members.get("__new__") or members.get("__init__")
        if maker is None:
            with pytest.raises(TypeError, match=r"No constructor|cannot create"):
                cls()
        else:
            module[name], stub[name] = module_parameters(cls), stub_parameters(maker)
        for dunder in DOCUMENTED_DUNDERS & members.keys():
            assert hasattr(cls, dunder), f"{name}.{dunder}"
    assert module == stub


def test_functions_and_methods_take_the_parameters_of_their_stubs() -> None:
    module = {name: module_parameters(getattr(_core, name)) for name in FUNCTIONS}
    stub = {name: stub_parameters(node) for name, node in FUNCTIONS.items()}
    for name, member, node in public_methods():
        runtime = getattr(getattr(_core, name), member)
        module[f"{name}.{member}"] = module_parameters(runtime)
        stub[f"{name}.{member}"] = stub_parameters(node)
    assert module == stub


def test_everything_public_is_documented() -> None:
    nodes: dict[str, ast.ClassDef | ast.FunctionDef] = {**CLASSES, **FUNCTIONS}
    nodes |= {f"{name}.{member}": node for name, member, node in public_methods()}
    assert [name for name, node in nodes.items() if not ast.get_docstring(node)] == []
