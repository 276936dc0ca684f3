"""Repair of projects with one injected fault each: how many are repaired, wrongly repaired, and in what time.

Used by `agent_repair.py --corpus faults`. A project counts as repaired if `agents repair` in the mode
`auto`, where nobody approves anything, leaves a tree with which all its tests and the held-back ones of
`oracle` pass. An accepted patch with which a held-back test fails is wrong.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents import Cluster
from agents.api.agent_spec import Capability
from agents.api.events import RunEvent, RunEventType
from agents.model.profile import CapabilityProfile
from agents.model.session import ModelSession
from agents.project_tests.run import run_tests
from agents.repair.repair_run import RepairOptions
from agents.repair.result import decision_text
from agents.steps.model_phase import StepsPhase
from agents.text.unified_diff import apply_diff
from benchmarks.fault_corpus import FaultProject, Half, fault_projects
from benchmarks.machine import write_result
from engine.api.config import EngineConfig
from engine.clients.in_process import InProcessClient
from engine.runtime.engine import AsyncPravahaEngine

WITHOUT = "no model"
Rows = dict[str, dict[str, Any]]


async def repaired(project: FaultProject, model: StepsPhase | None) -> dict[str, Any]:
    """Repair one project; what came of it."""
    events: list[RunEvent] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / project.name
        project.write(root)
        began = time.monotonic()
        result = await Cluster(model=model, mode="auto").repair(
            root,
            options=RepairOptions(mode="auto"),
            on_start=lambda run: run.log.follow(events.append),
        )
        seconds = time.monotonic() - began
        texts = {
            one.relative_to(root).as_posix(): one.read_text(encoding="utf-8")
            for one in root.rglob("*.py")
        }
        for path, text in (apply_diff(result.diff, texts) if result.diff else {}).items():
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text or "", encoding="utf-8")
        project.add_oracle(root)
        own = await run_tests(root)
        hidden = await run_tests(
            root, [f"oracle/{one.name}" for one in (root / "oracle").glob("test_*.py")]
        )
    right = bool(hidden.passed) and not hidden.failed and not own.failed and not own.problem
    counts = Counter(event.type for event in events)
    return {
        "set": project.half,
        "kind": project.kind,
        "repaired": right and bool(result.diff),
        "wrong": bool(result.diff) and bool(hidden.failed),
        "seconds": round(seconds, 1),
        "asked": counts[RunEventType.MODEL_ASKED],
        "candidates": counts[RunEventType.CANDIDATE_WRITTEN],
        "generated_tokens": result.usage.generated_tokens,
        "decisions": [decision_text(one) for one in result.decisions],
        "notes": list(result.notes),
        "error": result.error,
        "diff": result.diff,
        "refuted_by": sorted(hidden.failed),
    }


def summary(name: str, rows: Rows) -> str:
    """One line about the projects that were repaired with a model or without."""
    fixed = sum(row["repaired"] for row in rows.values())
    wrong = sum(row["wrong"] for row in rows.values())
    median = statistics.median(row["seconds"] for row in rows.values())
    asked = sum(bool(row["asked"]) for row in rows.values())
    return (
        f"{name}: {fixed} of {len(rows)} repaired ({fixed / len(rows):.0%}), {wrong} wrong patches accepted, "
        f"median {median:.0f} s, the model was asked in {asked}"
    )


def measure_faults(
    half: Half, model: Path | None, names: Sequence[str], file: Path | None
) -> dict[str, Rows]:
    """Repair the projects of a set without a model, and with one if it is given.

    What `file` has already is not measured again; it is written after each project.
    """
    found: dict[str, Rows] = {}
    if file is not None and file.is_file():
        found = json.loads(file.read_text(encoding="utf-8"))["projects"]
    projects = [one for one in fault_projects(half) if not names or one.name in names]

    async def run(column: str, phase: StepsPhase | None) -> None:
        rows = found.setdefault(column, {})
        for one in projects:
            if one.name in rows:
                continue
            row = rows[one.name] = await repaired(one, phase)
            word = "repaired" if row["repaired"] else "WRONG" if row["wrong"] else "open"
            print(f"{column}: {one.name} ({one.kind}): {word}, {row['seconds']} s", flush=True)
            for line in [*row["decisions"], *row["notes"]]:
                print(f"    {line}", flush=True)
            if file is not None:
                write_result(file, {"projects": found})

    asyncio.run(run(WITHOUT, None))
    if model is not None:
        asyncio.run(_with_model(model, run))
    for column, rows in found.items():
        chosen = {name: row for name, row in rows.items() if row["set"] == half}
        if chosen:
            print(summary(column, chosen))
    return found


async def _with_model(path: Path, run: Any) -> None:
    """The same with a model that may write, whatever its profile says: tests judge what it writes."""
    engine = AsyncPravahaEngine(EngineConfig(model=path, name=path.stem))
    engine.start()
    try:
        await asyncio.to_thread(engine.wait_ready, None)
        ranks = dict.fromkeys(list(Capability)[1:], 1.0)
        phase = StepsPhase(
            ModelSession(InProcessClient(engine)), profile=CapabilityProfile(path.stem, ranks)
        )
        await run(path.stem, phase)
    finally:
        engine.shutdown()
