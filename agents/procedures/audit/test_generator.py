"""A pytest file that fails before a finding is fixed and passes afterwards."""

import re
import textwrap

from agents.api.finding import Finding
from agents.detectors.audit.python_module import module_of
from agents.outputs.test_file import TestFile
from agents.procedures.audit.given_findings import findings_to_repair
from agents.procedures.audit.reproducers import reproducer_of, source_check_fails
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.workspace.workspace import Workspace


async def generate_test(task: AgentTask, context: ProcedureContext) -> TestFile:
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
    """The test of one finding; `cannot_do` says why there is none."""
    file = workspace.get(finding.file)
    module = module_of(file) if file is not None else None
    if module is None:
        return TestFile(cannot_do=f"{finding.file} is no Python file that parses."[:300])
    reproducer = reproducer_of(module, finding)
    if reproducer is None:
        return TestFile(cannot_do=f"No test can show {finding.rule} without knowing what is meant."[:300])
    if reproducer.kind == "source check" and not source_check_fails(module.tree, finding):
        return TestFile(
            cannot_do=f"A source check of {finding.rule} would pass before the fix."[:300]
        )
    name = re.sub(r"\W+", "_", f"{finding.rule}_{finding.id}").strip("_").lower()
    return TestFile(
        path=f"tests/test_{name}.py",
        code=_code(finding, name, reproducer.kind, reproducer.body),
        kind=reproducer.kind,
        finding_ids=[finding.id],
        reason=reproducer.reason,
    )


def _code(finding: Finding, name: str, kind: str, body: str) -> str:
    behaviour = kind == "behaviour"
    imports = "import importlib.util\nimport sys\n" if behaviour else "import ast\n"
    load = (
        "    sys.path.insert(0, str(ROOT))\n"
        "    sys.path.insert(0, str(SOURCE.parent))\n"
        '    specification = importlib.util.spec_from_file_location("module_under_test", SOURCE)\n'
        "    module = importlib.util.module_from_spec(specification)\n"
        "    specification.loader.exec_module(module)\n"
        if behaviour
        else '    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))\n'
    )
    extra = "\nimport pytest\n" if behaviour else ""
    return (
        f'"""{kind.capitalize()} for {finding.rule} in {finding.file}."""\n\n'
        f"{imports}from pathlib import Path\n{extra}\n"
        "ROOT = Path(__file__).resolve().parents[1]\n"
        f"SOURCE = ROOT / {finding.file!r}\n\n\n"
        f"def test_{name}():\n{load}{textwrap.indent(body, '    ')}"
    )
