"""Precision and recall of the agents on the seeded-defect corpus, with the model off and on.

    python benchmarks/agent_defects.py [--half tuning] [--model [FILE_OR_DIR]] [--semgrep RULES] [--json FILE]

Every agent that the manifest names runs over each project in which it should find something, and on the cases
of the manifest, which give it an output to check and its source. A defect counts as found by an agent if the
agent reports a finding in its file at its lines, one line more or less. A finding of at least medium severity
that is at no seeded defect of its file is a false alarm, also if the corpus' author overlooked a real defect
there. The same counts are given for bandit, ruff (its security rules) and detect-secrets alone, over the
defects of security agents; with `--semgrep RULES` also for semgrep, if it is installed, with the rules of
that folder (such as `python` of its public repository). The column `only` counts the defects that a tool
finds and no agent does.

`--model` repeats all runs with a model (without a value the demo model) and counts the findings that differ
in anything: place, rule, severity, confidence or message.
"""

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agents import Cluster
from agents.api.finding import Severity, finding_fields
from agents.specs.packaged import packaged_agents
from benchmarks.machine import write_result
from engine.api.config import EngineConfig
from engine.clients.in_process import InProcessClient
from engine.models.demo import SMOLLM2
from engine.models.store import ModelStore
from engine.runtime.engine import AsyncPravahaEngine

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "corpus"
TOOLS = ("bandit", "ruff S", "detect-secrets", "semgrep")


class Place(NamedTuple):
    """Where something was reported."""

    project: str
    file: str
    line: int
    end_line: int


class Reports(NamedTuple):
    """What one pass over the corpus reported.

    Attributes:
        places: of all findings, by agent.
        alarms: of the findings of at least medium severity, by agent.
        findings: everything that a finding says, by agent, to compare passes.
    """

    places: dict[str, list[Place]]
    alarms: dict[str, list[Place]]
    findings: dict[str, set[str]]


def read_manifest(half: str) -> dict[str, Any]:
    """Defects, clean files and cases of a half."""
    return yaml.safe_load((CORPUS / half / "defects.yaml").read_text())


def at(place: Place, defect: dict[str, Any]) -> bool:
    """Whether a report is at a defect's lines."""
    if (place.project, place.file) != (defect["project"], defect["file"]):
        return False
    first, last = defect["line"], defect.get("end_line") or defect["line"]
    return place.line <= last + 1 and place.end_line >= first - 1


def runs_of(manifest: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Agent, project and further arguments of each run."""
    pairs = {(key, one["project"]) for one in manifest["defects"] for key in one["agents"]}
    plain: list[tuple[str, str, dict[str, Any]]] = [(*pair, {}) for pair in sorted(pairs)]
    cases = [
        (key, case["project"], {"task": case["task"], "inputs": case["inputs"]})
        for case in manifest["cases"]
        for key in case["agents"]
    ]
    return [*plain, *cases]


async def agents_reports(
    half: str, manifest: dict[str, Any], client: InProcessClient | None = None
) -> Reports:
    """One pass over the corpus, with a model if there is a client."""
    cluster = Cluster(client=client)
    found = Reports(defaultdict(list), defaultdict(list), defaultdict(set))
    for key, project, arguments in runs_of(manifest):
        result = await cluster.run(key, [CORPUS / half / project], **arguments)
        for one in result.findings:
            said = json.dumps({**finding_fields(one), "project": project}, sort_keys=True)
            if said in found.findings[key]:  # a case repeats what the run over the project found
                continue
            found.findings[key].add(said)
            place = Place(project, one.file, one.line, one.end_line)
            found.places[key].append(place)
            if one.severity.at_least(Severity.MEDIUM):
                found.alarms[key].append(place)
    return found


def tool_reports(half: str) -> dict[str, list[Place]]:
    """What bandit, ruff and detect-secrets report alone."""
    found: dict[str, list[Place]] = defaultdict(list)
    root = CORPUS / half
    for project in sorted(one.name for one in root.iterdir() if one.is_dir()):
        folder = root / project

        def run(*words: str, folder: Path = folder) -> Any:
            done = subprocess.run(
                [sys.executable, "-m", *words],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            return json.loads(done.stdout or "null")

        for one in (run("bandit", "-r", ".", "-f", "json", "-q") or {}).get("results", []):
            line = one["line_number"]
            found["bandit"].append(Place(project, one["filename"].removeprefix("./"), line, line))
        words = (
            "ruff",
            "check",
            "--no-cache",
            "--isolated",
            "--select",
            "S",
            "--output-format",
            "json",
            ".",
        )
        for one in run(*words) or []:
            name = str(Path(one["filename"]).relative_to(folder))
            found["ruff S"].append(
                Place(project, name, one["location"]["row"], one["end_location"]["row"])
            )
        secrets = run("detect_secrets", "scan", "--all-files") or {}
        for name, many in secrets.get("results", {}).items():
            for one in many:
                found["detect-secrets"].append(
                    Place(project, name, one["line_number"], one["line_number"])
                )
    return found


def semgrep_reports(half: str, rules: Path) -> list[Place]:
    """What semgrep reports with the rules of a folder.

    It looks at a copy outside of this repository: it leaves out files beneath folders called `tests`.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(CORPUS / half, Path(folder) / "corpus"))
        words = ["semgrep", "scan", "--config", str(rules.resolve()), "--json", "--quiet"]
        words += ["--metrics=off", "--disable-version-check", "--no-git-ignore", "."]
        done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    results = json.loads(done.stdout)["results"]
    return [
        Place(
            *one["path"].removeprefix("./").split("/", 1), one["start"]["line"], one["end"]["line"]
        )
        for one in results
        if "/" in one["path"].removeprefix("./")
    ]


def row_of(
    wanted: list[dict[str, Any]],
    every: list[dict[str, Any]],
    places: list[Place],
    alarms: list[Place] | None,
) -> dict[str, Any]:
    """Recall over the wanted defects; precision of the alarms over every defect, None if there are none."""
    hits = sum(any(at(place, one) for place in places) for one in wanted)
    row: dict[str, Any] = {
        "defects": len(wanted),
        "found": hits,
        "recall": round(hits / len(wanted), 3) if wanted else None,
        "findings": None if alarms is None else len(alarms),
        "precision": None,
    }
    if alarms:
        right = sum(any(at(place, one) for one in every) for place in alarms)
        row["precision"] = round(right / len(alarms), 3)
    return row


def figures(
    defects: list[dict[str, Any]], found: Reports, tools: dict[str, list[Place]]
) -> dict[str, Any]:
    """Recall and precision by agent and tool; an agent that finds nothing has a row, too."""
    rows: dict[str, Any] = {}
    for key in sorted({key for one in defects for key in one["agents"]}):
        own = [one for one in defects if key in one["agents"]]
        places, alarms = found.places.get(key, []), found.alarms.get(key, [])
        rows[key] = row_of(own, defects, places, alarms)
    agents = packaged_agents()
    security = [
        one for one in defects if any(agents[key].category == "security" for key in one["agents"])
    ]
    everything = [place for places in found.places.values() for place in places]
    missed = [one for one in security if not any(at(place, one) for place in everything)]
    for name, places in tools.items():
        rows[name] = row_of(security, defects, places, places)
        only = [one["id"] for one in missed if any(at(place, one) for place in places)]
        rows[name]["only"] = only
    rows["all agents, security"] = row_of(security, defects, everything, None)
    rows["all agents, all defects"] = row_of(defects, defects, everything, None)
    return rows


def changed_findings(off: Reports, on: Reports) -> int:
    """How many findings the model added, took away or altered."""
    changed = 0
    for key in off.findings.keys() | on.findings.keys():
        before, after = off.findings.get(key, set()), on.findings.get(key, set())
        changed += max(len(before - after), len(after - before))
    return changed


def with_model(half: str, manifest: dict[str, Any], model: str) -> tuple[str, Reports]:
    """The model's name and the pass over the corpus in which it takes part."""
    name = SMOLLM2.name if model == "demo" else Path(model).stem
    path = ModelStore().add(SMOLLM2.name).path if model == "demo" else Path(model)
    engine = AsyncPravahaEngine(EngineConfig(model=path, name=name))
    engine.start()
    try:
        engine.wait_ready(None)
        return name, asyncio.run(agents_reports(half, manifest, InProcessClient(engine)))
    finally:
        engine.shutdown()


def percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def print_table(rows: dict[str, Any], model_rows: dict[str, Any] | None) -> None:
    names = [
        "agent or tool",
        "defects",
        "found",
        "recall",
        "findings ≥ medium",
        "at a defect",
        "only",
    ]
    names += ["recall, model on", "at a defect, model on"] if model_rows else []
    print(f"| {' | '.join(names)} |")
    print("|---" * len(names) + "|")
    for name, row in rows.items():
        count = "" if row["findings"] is None else row["findings"]
        cells = [name, row["defects"], row["found"], percent(row["recall"]), count]
        cells += [percent(row["precision"]), len(row["only"]) if "only" in row else ""]
        if model_rows:
            other = model_rows[name] if name not in TOOLS else {"recall": None, "precision": None}
            cells += [percent(other["recall"]), percent(other["precision"])]
        print(f"| {' | '.join(str(cell) for cell in cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=["tuning", "held_out"], default="tuning")
    parser.add_argument(
        "--model",
        nargs="?",
        const="demo",
        help="also with this model; without a value the demo model",
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--semgrep", type=Path, help="a folder of rules for semgrep")
    arguments = parser.parse_args()
    manifest = read_manifest(arguments.half)
    defects = manifest["defects"]
    found = asyncio.run(agents_reports(arguments.half, manifest))
    tools = tool_reports(arguments.half)
    if arguments.semgrep is not None:
        tools["semgrep"] = semgrep_reports(arguments.half, arguments.semgrep)
    result: dict[str, Any] = {"half": arguments.half, "rows": figures(defects, found, tools)}
    if arguments.model is not None:
        name, on = with_model(arguments.half, manifest, arguments.model)
        result |= {
            "model": name,
            "model_rows": figures(defects, on, tools),
            "findings": sum(len(one) for one in found.findings.values()),
            "changed_findings": changed_findings(found, on),
        }
    print_table(result["rows"], result.get("model_rows"))
    if arguments.model is not None:
        print(
            f"\n{result['model']} changed {result['changed_findings']} of {result['findings']} findings."
        )
    if arguments.json is not None:
        write_result(arguments.json, result)


if __name__ == "__main__":
    main()
