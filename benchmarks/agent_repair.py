"""Repair: the share of real small bugs that is fixed, and of wrong patches that is accepted.

    python benchmarks/agent_repair.py [--project NAME] [--skip-cheats] [--json FILE]
    python benchmarks/agent_repair.py --corpus faults [--set tuning|held_out] [--model FILE] [--json FILE]

The projects in `tests/corpus/repairs` have bugs that are listed in `bugs.yaml`, tests of their own, and a
folder `oracle` that the repair never sees. A bug counts as fixed if its test in `oracle` failed before and
passes after. A repair is wrong if a test in `oracle` fails that passed before.

Then every finding gets the patches of `adversarial_patches`; nobody approves anything. A cheat that is
accepted counts as wrong unless the bug's test in `oracle`, and every one that passed before, passes with
it.

`--corpus faults` repairs the projects of `tests/corpus/faults`, whose own tests fail, without a model and, if
one is given, with it (`fault_repairs`). A run that is stopped goes on with what its `--json` file lacks.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agents.api.finding import Finding, Severity, merge_findings
from agents.detectors.detector import Detector, DetectorContext
from agents.plugins.registry import load_registry
from agents.procedures.audit.test_generator import reproducing_tests
from agents.project_tests.run import run_tests
from agents.repair.acceptance import Gate
from agents.repair.heal import HealOptions, baseline_of, heal
from agents.repair.repair_run import AUDITORS
from agents.repair.result import decision_text
from agents.repair.work_copy import WorkCopy
from agents.roster.roster import load_roster
from agents.runs.detection import DetectorResults
from agents.text.unified_diff import apply_diff
from benchmarks.adversarial_patches import cheats
from benchmarks.fault_repairs import measure_faults
from benchmarks.machine import write_result

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "corpus" / "repairs"


def auditors() -> list[Detector]:
    """The detectors of a repair's auditors."""
    registry = load_registry()
    roster = load_roster(registry)
    names = dict.fromkeys(name for key in AUDITORS for name in roster.get(key).detectors)
    return [registry.detector(name) for name in names]


def without_oracle(project: str, folder: Path) -> Path:
    """A copy of a project as a repair sees it."""
    root = folder / project
    shutil.copytree(CORPUS / project, root, ignore=shutil.ignore_patterns("oracle", "__pycache__"))
    return root


async def oracle(project: str, root: Path) -> dict[str, bool]:
    """The hidden tests' outcomes on a tree, by name."""
    shutil.copytree(CORPUS / project / "oracle", root / "oracle", dirs_exist_ok=True)
    try:
        done = await run_tests(root, ["oracle"])
    finally:
        shutil.rmtree(root / "oracle")
    if done.problem:
        return {}
    outcome = dict.fromkeys((name.rpartition("::")[2] for name in done.passed), True)
    return outcome | dict.fromkeys((name.rpartition("::")[2] for name in done.failed), False)


async def fixed_bugs(
    project: str, bugs: list[dict[str, Any]], detectors: list[Detector]
) -> dict[str, Any]:
    """Repair a project at all severities; which bugs are fixed, and what broke."""
    with tempfile.TemporaryDirectory() as folder:
        root = without_oracle(project, Path(folder))
        before = await oracle(project, root)
        began = time.monotonic()
        result = await heal(root, detectors, options=HealOptions(min_severity=Severity.LOW))
        seconds = time.monotonic() - began
        texts = {
            str(one.relative_to(root)): one.read_text()
            for one in root.rglob("*")
            if one.is_file() and one.suffix in (".py", ".toml")
        }
        for path, text in (apply_diff(result.diff, texts) if result.diff else {}).items():
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text or "")
        after = await oracle(project, root)
    fixed = [
        one["oracle"] for one in bugs if not before[one["oracle"]] and after.get(one["oracle"])
    ]
    broken = [name for name, passed in before.items() if passed and not after.get(name)]
    return {
        "bugs": len(bugs),
        "accepted": len(result.accepted),
        "fixed": fixed,
        "open": [one["oracle"] for one in bugs if one["oracle"] not in fixed],
        "broken": broken,
        "rejected": [decision_text(one) for one in result.rejected],
        "seconds": round(seconds, 1),
    }  # fmt: skip


async def accepted_cheats(
    project: str, bugs: list[dict[str, Any]], detectors: list[Detector]
) -> dict[str, Any]:
    """Try every cheat on every finding at a listed bug; which were accepted, and which of those are wrong."""
    tried: Counter[str] = Counter()
    accepted: list[dict[str, Any]] = []
    reasons: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        root = without_oracle(project, Path(folder))
        before = await oracle(project, root)
        with WorkCopy(root) as copy:
            baseline = await baseline_of(copy, root)
            workspace = copy.workspace()
            results = DetectorResults(workspace, DetectorContext())
            found = merge_findings(await results.of(detectors))
            for bug in bugs:
                finding = _at(found, bug)
                if finding is None:
                    continue
                for name, patch in cheats(finding, workspace):
                    gate = Gate(copy, baseline, detectors)
                    decision = await gate.decide(
                        finding, patch, reproducing_tests(finding, workspace)
                    )
                    tried[name] += 1
                    reasons[decision.reason.split(":")[0][:60]] += not decision.accepted
                    if not decision.accepted:
                        continue
                    after = await oracle(project, copy.root)
                    copy.restore({path: old for path, (old, _) in copy.changes().items()})
                    kept = all(after.get(one) for one, passed in before.items() if passed)
                    right = kept and bool(after.get(bug["oracle"]))
                    accepted.append({"cheat": name, "bug": bug["oracle"], "wrong": not right})
    return {
        "tried": tried.total(),
        "accepted": accepted,
        "kinds": len(tried),
        "reasons": dict(reasons),
    }


def _at(findings: list[Finding], bug: dict[str, Any]) -> Finding | None:
    """The worst finding at a bug's line."""
    for one in findings:
        if one.file == bug["file"] and one.line <= bug["line"] <= max(one.line, one.end_line):
            return one
    return None


async def measure(names: list[str], *, with_cheats: bool) -> dict[str, Any]:
    """Both parts over some projects."""
    listed = yaml.safe_load((CORPUS / "bugs.yaml").read_text())
    detectors = auditors()
    rows: dict[str, Any] = {}
    for name in names or list(listed):
        row = {"repair": await fixed_bugs(name, listed[name], detectors)}
        if with_cheats:
            row["cheats"] = await accepted_cheats(name, listed[name], detectors)
        rows[name] = row
        print(
            name,
            {
                part: {k: v for k, v in value.items() if k != "reasons"}
                for part, value in row.items()
            },
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--project", action="append", default=[], help="only this project")
    parser.add_argument("--skip-cheats", action="store_true", help="only the share of fixed bugs")
    parser.add_argument("--json", type=Path, help="write the results to a file")
    parser.add_argument(
        "--corpus", choices=("bugs", "faults"), default="bugs", help="which projects"
    )
    parser.add_argument(
        "--set", choices=("tuning", "held_out"), default="tuning", help="of the faults"
    )
    parser.add_argument("--model", type=Path, help="a model that writes repairs of faults")
    given = parser.parse_args()
    if given.corpus == "faults":
        measure_faults(given.set, given.model, given.project, given.json)
        return
    rows = asyncio.run(measure(given.project, with_cheats=not given.skip_cheats))
    bugs = sum(row["repair"]["bugs"] for row in rows.values())
    fixed = sum(len(row["repair"]["fixed"]) for row in rows.values())
    broken = sum(len(row["repair"]["broken"]) for row in rows.values())
    print(f"\n{fixed} of {bugs} bugs fixed ({fixed / bugs:.0%}); {broken} hidden tests broken.")
    if not given.skip_cheats:
        tried = sum(row["cheats"]["tried"] for row in rows.values())
        accepted = [one for row in rows.values() for one in row["cheats"]["accepted"]]
        wrong = [one for one in accepted if one["wrong"]]
        print(f"{tried} cheats tried; {len(accepted)} accepted, of which {len(wrong)} are wrong.")
        for one in accepted:
            print("  ", one)
        reasons: Counter[str] = Counter()
        for row in rows.values():
            reasons.update(row["cheats"]["reasons"])
        for reason, count in reasons.most_common():
            print(f"{count:5} {reason}")
    if given.json is not None:
        write_result(given.json, rows)


if __name__ == "__main__":
    main()
