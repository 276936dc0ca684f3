"""A process that runs a stored toy pipeline; a node waits for a file, so that a test can kill it there.

python -m tests.unit.agents.chaos_run FOLDER [RUN]
"""

import asyncio
import sys
from pathlib import Path

from agents import Cluster
from agents.api.errors import AgentError
from agents.outputs.answer import Answer
from agents.plugins.registry import Registry
from agents.roster.roster import Roster
from agents.runs.run_store import RunStore
from tests.unit.agents.conftest import spec

GRAPH = (
    "name: toy\ndescription: A toy.\noutput: last\nnodes:\n"
    "  first: {agent: echo}\n"
    "  middle: {agent: gate, needs: [first]}\n"
    "  last: {agent: echo, needs: [middle], task: 'after {middle.text}'}\n"
)


def cluster_in(folder: Path) -> Cluster:
    """A cluster over `folder`: its database, its pipeline, and the files that its agents touch."""

    async def echo(task, context):
        with (folder / "calls").open("a") as file:
            file.write(f"{context.spec.key}:{task.text}\n")
        return Answer(text=task.text or "nothing")

    async def gate(task, context):
        (folder / "at-the-gate").touch()
        while not (folder / "open").exists():
            await asyncio.sleep(0.005)
        return Answer(text="through")

    (folder / "pipelines").mkdir(exist_ok=True)
    (folder / "pipelines" / "toy.yaml").write_text(GRAPH)
    registry = Registry(outputs={"Answer": Answer}, procedures={"echo": echo, "gate": gate})
    roster = Roster({key: spec(key) for key in ("echo", "gate")})
    return Cluster(
        registry=registry,
        roster=roster,
        store=RunStore(folder / "agents.db"),
        pipeline_folders=[folder / "pipelines"],
    )


async def main(folder: Path, run: str = "") -> None:
    """Run the pipeline, or resume a run; prints the run's id at its start, and how it ended."""
    cluster = cluster_in(folder)

    def started(run):
        print(run.id, flush=True)

    try:
        if run:
            result = await cluster.resume(run, on_start=started)
        else:
            result = await cluster.run_pipeline("toy", task="go", on_start=started)
        print(result.state.value, flush=True)
    except AgentError as error:
        print(f"refused: {error}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
