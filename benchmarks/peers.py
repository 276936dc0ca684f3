"""Pravāha beside other engines: the same model, the same work, interleaved in one run.

    python benchmarks/peers.py --dir DIR [--peers llama_cpp,openvino] [--rounds 3] [--json FILE]

DIR is where the peers live: a virtual environment for each (`DIR/llama_cpp`, …) and `DIR/models`,
made by the peers' own `setup.sh`. Every round runs ours, then each peer, each in a fresh process
that has the machine for itself; best and median over the rounds are printed, and the ratio of the
bests. A peer that is not installed, or fails, is skipped by name.

Columns: *single* is one stream of 128 tokens; 4, 16, 32 and 64 are that many streams of 64 random
prompt tokens and 64 new ones, decode throughput; *prefill* is the best prompt throughput of any
batch. Ours goes through the public engine, scheduler and detokeniser included.
"""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

COLUMNS = ("single", "4", "16", "32", "64", "prefill")
PEERS = ("llama_cpp", "openvino", "vllm_cpu", "transformers")
OURS = "pravaha"
REPEATS = 2
"""Runs of each column in a round: what the peers' scripts do, too."""
PRAVAHA = str(Path(sys.executable).with_name("pravaha"))
SCRIPTS = Path(__file__).resolve().parents[2] / "shared" / "peers"


@dataclass(slots=True)
class Contestant:
    """An engine with one weight format.

    Attributes:
        name: engine and weight format, as printed.
        version: the engine's own.
        rounds: column → tokens per second, one entry a round that measured it.
    """

    name: str
    version: str
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, column: str, rate: float) -> None:
        """Take note of a round's figure."""
        self.rounds.setdefault(column, []).append(rate)

    def best(self, column: str) -> float | None:
        """Highest throughput of any round, or None where the column was not measured."""
        return max(self.rounds[column]) if column in self.rounds else None

    def median(self, column: str) -> float | None:
        """Median throughput over the rounds, or None where the column was not measured."""
        return median(self.rounds[column]) if column in self.rounds else None


def figures_of_peer(lines: Iterable[str]) -> dict[str, tuple[str, dict[str, float]]]:
    """What a peer's script printed: name → version and column → tokens per second."""
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for line in lines:
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        name = f"{row['engine']} {row['weights']}"
        _, rates = found.setdefault(name, (str(row["version"]), {}))
        column = str(row["batch"])
        if column in COLUMNS and row["decode_tok_s"]:
            rates[column] = float(row["decode_tok_s"])
        if row["prefill_tok_s"]:
            rates["prefill"] = max(rates.get("prefill", 0.0), float(row["prefill_tok_s"]))
    return found


def figures_of_ours(report: dict[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """What `pravaha bench --json` printed: column → tokens per second, and share of roofline."""
    rates: dict[str, float] = {}
    shares: dict[str, float] = {}
    for name, column in report["columns"].items():
        if name in COLUMNS:
            rates[name] = column["output_throughput"]
            shares[name] = column["roofline_share"]
        if column["prefill_throughput"] and column["prefill_throughput"] > rates.get("prefill", 0):
            rates["prefill"] = column["prefill_throughput"]
            if column["prefill_roofline_share"]:
                shares["prefill"] = column["prefill_roofline_share"]
    return rates, shares


def ratios(ours: Contestant, peers: Iterable[Contestant]) -> dict[str, float]:
    """Column → our best over the best of the peers; columns nobody else measured are left out."""
    result: dict[str, float] = {}
    for column in COLUMNS:
        rate = ours.best(column)
        others = [best for peer in peers if (best := peer.best(column)) is not None]
        if rate is not None and others:
            result[column] = rate / max(others)
    return result


def run(command: list[str], cwd: Path | None = None) -> str:
    """A command's output.

    Raises:
        RuntimeError: the command failed; with the last line it wrote.
    """
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise RuntimeError(f"exit status {done.returncode}: {said[-1]}")
    return done.stdout


def cpu_name() -> str:
    """The processor as the kernel calls it."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    names = [
        ln.partition(":")[2].strip() for ln in text.splitlines() if ln.startswith("model name")
    ]
    return f"{len(names)} × {names[0]}" if names else platform.processor()


def say(sentence: str) -> None:
    """Progress, apart from the result."""
    print(sentence, file=sys.stderr, flush=True)


def measure(
    peers: list[str], directory: Path, scripts: Path, rounds: int, model: str
) -> Iterator[tuple[Contestant, list[Contestant], dict[str, float]]]:
    """Run the rounds; after each: ours, the others, and our best share of the roofline by column."""
    ours = Contestant(OURS, "")
    others: dict[str, Contestant] = {}
    shares: dict[str, float] = {}
    for number in range(1, rounds + 1):
        say(f"round {number} of {rounds}: {OURS}")
        report = json.loads(
            run([PRAVAHA, "bench", "--json", "--repeats", str(REPEATS), "--model", model])
        )
        ours.name = f"{OURS} {report['model']['weight_format']}"
        rates, round_shares = figures_of_ours(report)
        for column, rate in rates.items():
            ours.add(column, rate)
        for column, share in round_shares.items():
            shares[column] = max(share, shares.get(column, 0.0))
        for peer in list(peers):
            say(f"round {number} of {rounds}: {peer}")
            python, script = directory / peer / "bin" / "python", scripts / f"{peer}_peer.py"
            if not python.exists() or not script.exists():
                missing = python if not python.exists() else script
                say(f"{peer} is skipped: there is no {missing}")
                peers.remove(peer)
                continue
            try:
                printed = run([str(python), script.name, str(directory / "models")], cwd=scripts)
            except RuntimeError as error:
                say(f"{peer} is skipped from here on: {error}")
                peers.remove(peer)
                continue
            for name, (version, figures) in figures_of_peer(printed.splitlines()).items():
                contestant = others.setdefault(name, Contestant(name, version))
                for column, rate in figures.items():
                    contestant.add(column, rate)
        yield ours, list(others.values()), shares


def print_table(
    ours: Contestant, others: list[Contestant], ratio: dict[str, float], share: dict[str, float]
) -> None:
    """Best (median) of each contestant, then ratios and shares."""
    table = Table(title="tokens per second: best (median)", title_justify="left")
    table.add_column("")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for contestant in (ours, *others):
        cells = [
            f"{best:,.0f} ({contestant.median(column):,.0f})"
            if (best := contestant.best(column)) is not None
            else "–"
            for column in COLUMNS
        ]
        table.add_row(contestant.name, *cells)
    table.add_section()
    table.add_row("÷ best peer", *(f"{ratio[c]:.2f}" if c in ratio else "–" for c in COLUMNS))
    table.add_row("of roofline", *(f"{share[c]:.0%}" if c in share else "–" for c in COLUMNS))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True, help="where the peers live")
    parser.add_argument("--peers", default=",".join(PEERS), help="which, separated by commas")
    parser.add_argument("--scripts", type=Path, default=SCRIPTS, help="the peers' scripts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="smollm2", help="ours; the peers bring the same file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    options = parser.parse_args()
    peers = [name for name in options.peers.split(",") if name]
    unknown = sorted(set(peers) - set(PEERS))
    if unknown or options.rounds < 1:
        parser.error(
            f"no peer is called {', '.join(unknown)}: there are {', '.join(PEERS)}"
            if unknown
            else "--rounds must be at least 1"
        )
    for number, (ours, others, shares) in enumerate(
        measure(
            peers,
            options.dir.resolve(),
            options.scripts.resolve(),
            options.rounds,
            options.model,
        ),
        start=1,
    ):
        # After every round, so that a run that is stopped leaves what it measured.
        ratio = ratios(ours, others)
        print_table(ours, others, ratio, shares)
        if options.json:
            result = {
                "date": datetime.now(UTC).date().isoformat(),
                "cpu": cpu_name(),
                "rounds": number,
                "contestants": [asdict(contestant) for contestant in (ours, *others)],
                "ratio_to_best_peer": ratio,
                "share_of_roofline": shares,
            }
            options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
