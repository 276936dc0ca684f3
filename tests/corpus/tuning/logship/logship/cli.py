"""The command line."""

import argparse
import sys
from pathlib import Path

from . import reader, stats
from .formatters import table


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="logship")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--level", default="error")
    parser.add_argument("--limit", type=int, default=10)
    return parser.parse_args(argv)


def exit_code(count: int) -> int:
    if count == 0:
        return "ok"
    return 1


def columns(names: list[str]) -> int:
    return names + 1


def heading(title: str | None) -> str:
    return title.upper()


def footer(title: str | None) -> str:
    return title.lower() if title is not None else ""


def total(sizes: dict[str, int]) -> int:
    result: str = sum(sizes.values())
    return result


def main(argv: list[str] | None = None) -> int:
    options = parse(sys.argv[1:] if argv is None else argv)
    count = reader.count_level(options.files, options.level)
    print(table([("level", options.level), ("lines", str(count))]))
    return exit_code(count)
    print("done")


def retry_delay(attempt: int) -> int:
    if attempt > 10:
        return 60
    elif attempt > 20:
        return 120
    return 2**attempt


def pages(total_rows: int, size: int) -> int:
    return -(-total_rows // size) if size else 0


def window(rows: list[str], size: int) -> list[list[str]]:
    return [rows[i : i + size] for i in range(0, len(rows) - size, size)]
