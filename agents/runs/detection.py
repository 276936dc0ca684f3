"""Running detectors: each once per workspace, on a worker thread, whatever it raises."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace

from agents.api.errors import Cancelled
from agents.api.finding import Finding, merge_findings
from agents.detectors.detector import Detector, DetectorContext
from agents.workspace.workspace import Workspace

_LOG = logging.getLogger(__name__)
MAX_FINDINGS = 2_000
"""Findings kept of one detector; the worst stay."""


class DetectorResults:
    """Findings of detectors over one workspace. A detector that several agents name runs once.

    Use from one event loop.
    """

    def __init__(self, workspace: Workspace, context: DetectorContext) -> None:
        self._workspace = workspace
        self._context = context
        self._running: dict[str, asyncio.Future[list[Finding]]] = {}
        self._contexts: dict[str, DetectorContext] = {}

    def notes(self, names: Iterable[str]) -> list[str]:
        """What the named detectors had to say."""
        contexts = [self._contexts[name] for name in names if name in self._contexts]
        return list(dict.fromkeys(note for context in contexts for note in context.notes))

    async def of(self, detectors: Iterable[Detector]) -> list[Finding]:
        """Merged findings of several detectors.

        Raises:
            Cancelled: the run was cancelled.
        """
        # Together, because external tools run as processes of their own beside the others.
        found = await asyncio.gather(*(self._of_one(detector) for detector in detectors))
        return merge_findings([one for many in found for one in many])

    def finished(self, names: Iterable[str]) -> list[Finding]:
        """Merged findings of those of the named detectors that have finished: a partial result."""
        done = [
            future.result()
            for name in names
            if (future := self._running.get(name)) is not None
            and future.done()
            and not future.cancelled()
            and future.exception() is None
        ]
        return merge_findings([one for many in done for one in many])

    async def _of_one(self, detector: Detector) -> list[Finding]:
        future = self._running.get(detector.name)
        if future is None:
            context = replace(self._context, notes=[])
            self._contexts[detector.name] = context
            work = (
                self._select(detector, context)
                if detector.parts
                else asyncio.to_thread(self._run, detector, context)
            )
            future = asyncio.ensure_future(work)
            self._running[detector.name] = future
        return await asyncio.shield(future)

    async def _select(self, detector: Detector, context: DetectorContext) -> list[Finding]:
        wanted = {rule.id for rule in detector.rules}
        found = [await self._of_one(part) for part in detector.parts]
        for text in self.notes(part.name for part in detector.parts):
            context.note(text)
        return [one for many in found for one in many if one.rule in wanted]

    def _run(self, detector: Detector, context: DetectorContext) -> list[Finding]:
        context.check_cancelled()
        try:
            found = [
                replace(finding, detector=detector.name)
                for finding in detector.detect(self._workspace, context)
            ]
        except Cancelled:
            raise
        except Exception as error:  # one detector's mistake must not hide what the others find
            _LOG.exception("detector %s failed", detector.name)
            context.note(
                f"The detector {detector.name} failed ({type(error).__name__}: {error!s:.200}): its "
                "findings are missing."
            )
            return []
        if len(found) > MAX_FINDINGS:
            context.note(
                f"{detector.name} found {len(found):,} defects; the worst {MAX_FINDINGS:,} are kept."
            )
            found = sorted(found, key=lambda one: -one.severity.rank)[:MAX_FINDINGS]
        return found
