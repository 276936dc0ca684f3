"""Precision and recall of the agents on the seeded-defect corpus, with the model off.

Each agent runs over the folder of each project, without further words. An agent that found nothing has
a row, too.

    python benchmarks/agent_defects.py [--half tuning] [--json FILE]

A defect counts as found by an agent that should find it if the agent reports a finding in its file at its
lines, one line more or less. A finding of at least medium severity that is at no seeded defect of its file is
a false alarm, also if the corpus' author overlooked a real defect there. The same counts are given for
bandit, ruff (its security rules) and detect-secrets alone, over the defects of security agents.
"""

import argparse
import asyncio
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agents import Cluster
from agents.api.finding import Severity
from agents.roster.keys import BUILTIN_KEYS
from benchmarks.machine import write_result

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "corpus"


class Place(NamedTuple):
    """Where something was reported."""

    project: str
    file: str
    line: int
    end_line: int


def read_defects(half: str) -> list[dict[str, Any]]:
    """The defects of a half."""
    return yaml.safe_load((CORPUS / half / "defects.yaml").read_text())["defects"]


def at(place: Place, defect: dict[str, Any]) -> bool:
    """Whether a report is at a defect's lines."""
    if (place.project, place.file) != (defect["project"], defect["file"]):
        return False
    first, last = defect["line"], defect.get("end_line") or defect["line"]
    return place.line <= last + 1 and place.end_line >= first - 1


async def agents_reports(half: str, defects: list[dict[str, Any]]) -> dict[str, list[Place]]:
    """Findings of at least medium severity, and all, by agent."""
    cluster = Cluster()
    wanted: dict[str, set[str]] = defaultdict(set)
    for defect in defects:
        for key in defect["agents"]:
            wanted[key].add(defect["project"])
    found: dict[str, list[Place]] = defaultdict(list, {key: [] for key in wanted})
    for key in sorted(wanted):
        for project in sorted(wanted[key]):
            root = CORPUS / half / project
            result = await cluster.run(key, [root])
            for one in result.findings:
                place = Place(project, one.file, one.line, one.end_line)
                found[key].append(place)
                if one.severity.at_least(Severity.MEDIUM):
                    found[f"{key}:medium"].append(place)
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
        words = ("ruff", "check", "--isolated", "--select", "S", "--output-format", "json", ".")
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


def figures(
    defects: list[dict[str, Any]], found: dict[str, list[Place]], tools: dict[str, list[Place]]
) -> dict[str, Any]:
    """Recall and precision by agent and tool."""
    rows: dict[str, Any] = {}
    for key in sorted(key for key in found if ":" not in key):
        own = [one for one in defects if key in one["agents"]]
        hits = sum(any(at(place, one) for place in found[key]) for one in own)
        alarms = found.get(f"{key}:medium", [])
        right = sum(any(at(place, one) for one in defects) for place in alarms)
        rows[key] = {
            "defects": len(own),
            "found": hits,
            "recall": round(hits / len(own), 3),
            "findings": len(alarms),
            "precision": round(right / len(alarms), 3) if alarms else None,
        }
    security = [one for one in defects if set(one["agents"]) & set(BUILTIN_KEYS["security"])]
    for name, places in tools.items():
        hits = sum(any(at(place, one) for place in places) for one in security)
        right = sum(any(at(place, one) for one in defects) for place in places)
        rows[name] = {
            "defects": len(security),
            "found": hits,
            "recall": round(hits / len(security), 3),
            "findings": len(places),
            "precision": round(right / len(places), 3) if places else None,
        }
    every = [place for key, places in found.items() if ":" not in key for place in places]
    hits = sum(any(at(place, one) for place in every) for one in security)
    rows["all agents, security"] = {
        "defects": len(security), "found": hits, "recall": round(hits / len(security), 3),
        "findings": None, "precision": None,
    }  # fmt: skip
    total = sum(any(at(place, one) for place in every) for one in defects)
    rows["all agents, all defects"] = {
        "defects": len(defects), "found": total, "recall": round(total / len(defects), 3),
        "findings": None, "precision": None,
    }  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=["tuning", "held_out"], default="tuning")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    defects = read_defects(arguments.half)
    found = asyncio.run(agents_reports(arguments.half, defects))
    rows = figures(defects, found, tool_reports(arguments.half))
    print("| agent or tool | defects | found | recall | findings ≥ medium | of which at a defect |")
    print("|---|---|---|---|---|---|")
    for name, row in rows.items():
        share = "" if row["precision"] is None else f"{row['precision']:.0%}"
        count = "" if row["findings"] is None else row["findings"]
        print(
            f"| {name} | {row['defects']} | {row['found']} | {row['recall']:.0%} | {count} | {share} |"
        )
    if arguments.json is not None:
        write_result(arguments.json, {"half": arguments.half, "rows": rows})


if __name__ == "__main__":
    main()
