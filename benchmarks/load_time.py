"""Load time of models: packing the weights, mapping packed ones, and llama.cpp's mapping beside them.

    python benchmarks/load_time.py --model FILE [FILE ...] [--dir PEERS] [--runs 3] [--threads N]
        [--json FILE]

Every load is a process of its own; the rows of a model take turns. *Cold*: the files that are read were
removed from the page cache before (posix_fadvise), *warm*: they were read before. Medians in seconds:
headers and tokenizer, weights, and from there to the first token of a prompt of 32 tokens; and the fastest
of 30 decode steps, in ms. `total` is their sum without the step. Without `--dir` (`peers_setup.sh`),
llama.cpp is left out; its opening time is part of `weights`.

*saving* loads with an empty weight cache: the packed weights are written in the background while the first
token is computed. *small pages*: the mapped file was read into the page cache in pages of 4 KiB, as on file
systems without larger ones.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.machine import ROOT, say, write_result

PROMPT, STEPS = 32, 30
TIMES = ("opening", "weights", "first_token")
_PAGE = 4096


@dataclass(slots=True)
class Row:
    """One way of loading.

    Attributes:
        name: as printed.
        prepare: sets up files and page cache before each load.
        command: the load's command.
        loads: what each load printed.
    """

    name: str
    prepare: Callable[[], None]
    command: Sequence[str]
    loads: list[dict[str, object]] = field(default_factory=list)

    def run(self) -> None:
        """Load once."""
        self.prepare()
        ran = subprocess.run(self.command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        load = json.loads(ran.stdout.splitlines()[-1])
        if self.name.startswith("mapped") and load["packed"] != "mapped":
            raise SystemExit(f"{self.name}: the weights were not mapped ({load['packed']}).")
        self.loads.append(load)

    def median(self, key: str) -> float:
        """The median of one of the loads' figures; 0 if they have none of that name."""
        return statistics.median(float(str(load.get(key, 0.0))) for load in self.loads)


def forget(paths: Sequence[Path]) -> None:
    """Remove files from the page cache."""
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(paths: Sequence[Path], *, small_pages: bool = False) -> None:
    """Read files into the page cache; with `small_pages` one by one."""
    for path in paths:
        with path.open("rb", buffering=0) as file:
            if small_pages:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            while file.read(_PAGE if small_pages else 1 << 22):
                pass


def rows_of(model: Path, cache: Path, peers: Path | None, threads: int) -> list[Row]:
    """The ways of loading a model. The first one that saves fills the cache for the others."""
    sources = sorted(model.glob("*.safetensors")) if model.is_dir() else [model]
    common = ["--model", str(model.resolve()), "--threads", str(threads)]
    common += ["--prompt", str(PROMPT), "--steps", str(STEPS)]
    ours = [sys.executable, "-m", "benchmarks.drivers.pravaha_load", *common]
    cached = [*ours, "--cache", str(cache)]

    def packed() -> list[Path]:
        return list(cache.glob("*.packed"))

    def emptied() -> None:
        for path in packed():
            path.unlink()
        read(sources)

    def small() -> None:
        forget(packed())
        read(packed(), small_pages=True)

    rows = [
        Row("packed, cold", lambda: forget(sources), ours),
        Row("packed, warm", lambda: read(sources), ours),
        Row("packed and saving, warm", emptied, cached),
        Row("mapped, cold", lambda: forget([*packed(), *sources]), cached),
        Row("mapped, warm", lambda: read([*packed(), *sources]), cached),
        Row("mapped, small pages", small, cached),
    ]
    if peers is not None:
        python = str(peers.resolve() / "llama_cpp" / "bin" / "python")
        theirs = [python, "benchmarks/drivers/llama_cpp_load.py", *common]
        rows += [
            Row("llama.cpp, cold", lambda: forget(sources), theirs),
            Row("llama.cpp, warm", lambda: read(sources), theirs),
        ]
    return rows


def report(model: Path, rows: Sequence[Row]) -> None:
    """Print the table of a model."""
    print(f"\n{model.name}")
    print("".ljust(26) + "".join(name.rjust(14) for name in (*TIMES, "total", "step ms")))
    for row in rows:
        seconds = [row.median(name) for name in TIMES]
        step = 1e3 * min(float(str(load["step"])) for load in row.loads)
        cells = [f"{value:.2f}" for value in (*seconds, sum(seconds))] + [f"{step:.2f}"]
        print(row.name.ljust(26) + "".join(cell.rjust(14) for cell in cells))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, nargs="+", required=True, help="GGUF files")
    parser.add_argument("--dir", type=Path, help="folder of peers_setup.sh")
    parser.add_argument("--runs", type=int, default=3, help="loads of each row")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, help="write the result here")
    options = parser.parse_args()
    found = {}
    for model in options.model:
        with tempfile.TemporaryDirectory(dir=model.resolve().parent, prefix=".packed-") as folder:
            rows = rows_of(model, Path(folder), options.dir, options.threads)
            for _ in range(options.runs):
                for row in rows:
                    say(f"{model.name}: {row.name}")
                    row.run()
        report(model, rows)
        found[model.name] = {row.name: row.loads for row in rows}
        if options.json:
            write_result(options.json, {"loads": found})


if __name__ == "__main__":
    main()
