"""Detect functions made of checks over single files."""

from collections.abc import Callable, Iterable, Iterator

from agents.api.finding import Finding
from agents.detectors.audit.python_module import PythonModule, is_test_path, module_of
from agents.detectors.detector import DetectFunction, DetectorContext
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

ModuleCheck = Callable[[PythonModule], Iterable[Finding]]
FileCheck = Callable[[SourceFile], Iterable[Finding]]


def python_files(
    workspace: Workspace, context: DetectorContext, *, tests: bool = True
) -> Iterator[PythonModule]:
    """The valid Python modules; `tests` false leaves test files out."""
    for file in workspace.of("python"):
        context.check_cancelled()
        if not tests and is_test_path(file.path):
            continue
        module = module_of(file)
        if module is not None:
            yield module


def checked_modules(*checks: ModuleCheck, tests: bool = True) -> DetectFunction:
    """A detect function that applies checks to every Python module."""

    def detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
        for module in python_files(workspace, context, tests=tests):
            try:
                for check in checks:
                    yield from check(module)
            except RecursionError:
                context.note(f"{module.file.path} is nested too deeply to be checked in full.")

    return detect


def checked_files(
    languages: Iterable[str], *checks: FileCheck, tests: bool = True
) -> DetectFunction:
    """A detect function that applies checks to every file of some languages."""
    wanted = tuple(languages)

    def detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
        for file in workspace.of(*wanted):
            context.check_cancelled()
            if not tests and is_test_path(file.path):
                continue
            try:
                for check in checks:
                    yield from check(file)
            except RecursionError:
                context.note(f"{file.path} is nested too deeply to be checked in full.")

    return detect


def joined(*functions: DetectFunction) -> DetectFunction:
    """A detect function that yields what several yield."""

    def detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
        for function in functions:
            yield from function(workspace, context)

    return detect
