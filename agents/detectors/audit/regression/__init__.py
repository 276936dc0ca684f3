"""A change's harm: what is worse in the workspace than in `context.base`. The detector of `regression_guard`."""

from collections.abc import Iterator

from agents.api.errors import InvalidTask
from agents.api.finding import Finding
from agents.detectors.audit.regression import benchmarks, public_api, weakened_tests
from agents.detectors.detector import Detector, DetectorContext
from agents.workspace.workspace import Workspace, open_workspace


def base_workspace(context: DetectorContext) -> Workspace | None:
    """The state before the change, or None if there is none; a note says why."""
    if context.base is None:
        context.note("There is no base state to compare with.")
        return None
    try:
        return open_workspace([context.base])
    except InvalidTask as error:
        context.note(str(error))
        return None


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    base = base_workspace(context)
    if base is not None:
        yield from regressions(base, workspace, context)


def regressions(
    base: Workspace, workspace: Workspace, context: DetectorContext
) -> Iterator[Finding]:
    """Findings about what is worse in `workspace` than in `base`."""
    yield from public_api.api_changes(base, workspace, context)
    yield from weakened_tests.test_changes(base, workspace, context)
    yield from benchmarks.benchmark_changes(base, workspace, context)


REGRESSION = Detector(
    "regression",
    "Removed or changed public names, deleted, skipped or weakened tests, and worse benchmarks.",
    _detect,
    (*public_api.RULES, *weakened_tests.RULES, *benchmarks.RULES),
)

__all__ = ["REGRESSION", "base_workspace", "regressions"]
