"""A pytest file that fails before a finding is fixed and passes afterwards."""

import re
import textwrap
from pathlib import PurePosixPath

from agents.api.finding import Finding
from agents.detectors.audit.python_module import module_of
from agents.outputs.test_file import TestFile
from agents.procedures.audit.given_findings import findings_to_repair
from agents.procedures.audit.reproducers import Reproducer, reproducers_of
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.workspace.workspace import Workspace


async def run(task: AgentTask, context: ProcedureContext) -> TestFile:
    """A test for the first finding that a test can show; behaviour tests are preferred."""
    findings = await findings_to_repair(task, context)
    if not findings:
        return TestFile(cannot_do="There is no finding to write a test for.")
    made: list[TestFile] = []
    for finding in findings:
        context.check_cancelled()
        test = await context.in_thread(reproducing_test, finding, task.workspace)
        if test.kind == "behaviour":
            return test
        made.append(test)
    return next((test for test in made if not test.cannot_do), made[0])


def reproducing_test(finding: Finding, workspace: Workspace) -> TestFile:
    """The best test of one finding; `cannot_do` says why there is none. It has not run."""
    tests = reproducing_tests(finding, workspace)
    if tests:
        return tests[0]
    file = workspace.get(finding.file)
    if file is None or module_of(file) is None:
        return TestFile(cannot_do=f"{finding.file} is no Python file that parses."[:300])
    return TestFile(
        cannot_do=f"No test can show {finding.rule} without knowing what is meant."[:300]
    )


def reproducing_tests(finding: Finding, workspace: Workspace) -> list[TestFile]:
    """The tests that may show a finding, the best first; which of them fails is known when they have run."""
    file = workspace.get(finding.file)
    module = module_of(file) if file is not None else None
    if module is None:
        return []
    base = name = re.sub(r"\W+", "_", f"{finding.rule}_{finding.id}").strip("_").lower()
    number = 2
    while workspace.get(f"tests/test_{name}.py") is not None:  # the same code at two places
        name, number = f"{base}_{number}", number + 1
    return [
        TestFile(
            path=f"tests/test_{name}.py",
            code=_code(finding, name, reproducer, workspace),
            kind=reproducer.kind,
            finding_ids=[finding.id],
            reason=reproducer.reason,
        )
        for reproducer in reproducers_of(module, finding)
    ]


def _code(finding: Finding, name: str, reproducer: Reproducer, workspace: Workspace) -> str:
    if reproducer.kind == "behaviour":
        modules, load = [*reproducer.imports], loading_code(finding.file, workspace)
    else:
        modules, load = ["ast"], 'tree = ast.parse(SOURCE.read_text(encoding="utf-8"))\n'
    return test_module(
        f"{reproducer.kind.capitalize()} for {finding.rule} in {finding.file}.",
        modules,
        f"SOURCE = ROOT / {finding.file!r}\n",
        f"def test_{name}({', '.join(reproducer.fixtures)}):\n"
        + textwrap.indent(load + reproducer.body, "    ", lambda line: bool(line.strip())),
        pytest="pytest." in load + reproducer.body,
    )


def test_module(
    title: str, modules: list[str], constants: str, function: str, *, pytest: bool
) -> str:
    """The text of a test file in `tests/`; `ROOT` is the project's folder.

    Args:
        title: its docstring.
        modules: of the standard library that it imports; `unittest.mock` as `mock`.
        constants: lines after `ROOT`.
        function: the test.
        pytest: whether it uses pytest.
    """
    needed = {*modules} | ({"importlib.util", "sys"} if "importlib" in function else set())
    plain = [f"import {one}" for one in sorted(needed) if one != "unittest.mock"]
    plain.append("from pathlib import Path")
    if "unittest.mock" in needed:
        plain.append("from unittest import mock")
    third = "\nimport pytest\n" if pytest else ""
    return (
        f'"""{title}"""\n\n' + "\n".join(plain) + f"\n{third}\n"
        f"ROOT = Path(__file__).resolve().parents[1]\n{constants}\n\n{function}"
    )


test_module.__test__ = False  # type: ignore[attr-defined]  # pytest must not collect it


def loading_code(
    path: str, workspace: Workspace, *, name: str = "module", file: str = "SOURCE"
) -> str:
    """Statements that import a file of the project as `name`; the test is skipped if that is not possible.

    Args:
        path: the file, relative to the project.
        workspace: the project's files, to find the package that it belongs to.
        name: the variable.
        file: the variable with its absolute path.
    """
    folder, dotted = package_of(path, workspace)
    if "." in dotted:
        bring = f"{name} = importlib.import_module({dotted!r})\n"
        check = (
            f"if Path({name}.__file__ or '').resolve() != {file}.resolve():\n"
            f"    pytest.skip('another {dotted} is installed')\n"
        )
    else:
        bring = (
            f"specification = importlib.util.spec_from_file_location('under_test_{name}', {file})\n"
            f"    {name} = importlib.util.module_from_spec(specification)\n"
            f"    sys.modules[specification.name] = {name}\n"
            f"    specification.loader.exec_module({name})\n"
        )
        check = ""
    root = "ROOT" if folder == "." else f"ROOT / {folder!r}"
    return (
        f"sys.path[:0] = [str(ROOT), str({root})]\n"
        f"try:\n    {bring}except Exception as error:\n"
        "    pytest.skip(f'the file cannot be imported: {error}')\n" + check
    )


def package_of(path: str, workspace: Workspace) -> tuple[str, str]:
    """The folder that must be on the search path, and the dotted name of a file of the project."""
    own = PurePosixPath(path)
    parts = [own.stem]
    folder = own.parent
    while folder != PurePosixPath(".") and workspace.get(f"{folder}/__init__.py") is not None:
        parts.insert(0, folder.name)
        folder = folder.parent
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return str(folder), ".".join(parts)
