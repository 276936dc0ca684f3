"""Measures calls of tools with the sets of the Berkeley Function Calling Leaderboard and its own checker.

    python benchmarks/tool_calls.py --url http://127.0.0.1:8000 [--sets simple_python irrelevance]
        [--cases 50] [--skip 50] [--json FILE] [--body '{"tool_decision": "model"}']

The sets and the checker come from the PyPI package `bfcl-eval`, which pip fetches into a cache and which is
not installed: it brings the clients of every vendor. Cases are drawn in a fixed random order; the thresholds
of `engine/text/tool_calls/thresholds.json` were set with the first 50 of each set, and `--skip 50` asks
others; `--in-order` takes them as the file has them. An answer without a call is right in `irrelevance`; of
the others BFCL's checker compares names, types and values (of texts without case, spaces and punctuation).

Any server with OpenAI's chat completions can be measured. Results are kept in the file after each case, and
cases that it has are not asked again.
"""

import argparse
import importlib
import json
import random
import subprocess
import sys
import time
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import write_result
from engine.files.cache_dir import cache_dir

PACKAGE = "bfcl-eval==2026.3.23"
SETS = ("simple_python", "multiple", "irrelevance", "parallel")
_SEED = 36
_TYPES = {
    "integer": "integer", "number": "number", "float": "number", "string": "string",
    "boolean": "boolean", "bool": "boolean", "array": "array", "list": "array", "tuple": "array",
    "dict": "object", "object": "object",
}  # fmt: skip
"""JSON's names of BFCL's types; others are strings, as in BFCL's own conversion."""
Case = dict[str, Any]


class Bfcl:
    """The unpacked package."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not (folder / "bfcl_eval").exists():
            _unpack(folder)
        self._check = _checker(folder)

    def cases(self, name: str, *, in_order: bool = False) -> list[Case]:
        """The cases of a set in a fixed random order, or in that of the file."""
        data = self._folder / "bfcl_eval" / "data"
        rows = _lines(data / f"BFCL_v4_{name}.json")
        answers = data / "possible_answer" / f"BFCL_v4_{name}.json"
        known = (
            {one["id"]: one["ground_truth"] for one in _lines(answers)} if answers.exists() else {}
        )
        if not in_order:
            random.Random(_SEED).shuffle(rows)
        return [{**row, "set": name, "answer": known.get(row["id"])} for row in rows]

    def problem(self, case: Case, calls: list[dict[str, Any]]) -> str | None:
        """What is wrong with the calls, each an object of name and arguments; None if nothing is."""
        if case["answer"] is None:
            return f"called {', '.join(name for call in calls for name in call)}" if calls else None
        try:
            found = self._check(case["function"], calls, case["answer"], case["set"])
        except Exception as error:  # the checker fails on some wrong answers
            return f"{type(error).__name__}: {error}"
        return None if found["valid"] else f"{found['error_type']}: {found['error']}"[:300]


def _unpack(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        str(folder),
        PACKAGE,
    ]
    subprocess.run(command, check=True)
    for wheel in folder.glob("bfcl_eval-*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)


def _checker(folder: Path) -> Any:
    """BFCL's checker for Python. The table of models, which imports every vendor's client, is left out."""

    class Models(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            return SimpleNamespace(underscore_to_dot=True)

    table = ModuleType("bfcl_eval.constants.model_config")
    table.__dict__["MODEL_CONFIG_MAPPING"] = Models()
    sys.modules[table.__name__] = table
    sys.path.insert(0, str(folder))
    checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON
    return lambda functions, calls, answer, name: checker.ast_checker(
        functions, calls, answer, python, name, "any"
    )


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def tool_of(function: dict[str, Any]) -> dict[str, Any]:
    """BFCL's function in OpenAI's form; dots are no part of a name."""
    return {
        "type": "function",
        "function": {
            "name": function["name"].replace(".", "_"),
            "description": function["description"],
            "parameters": _schema(function["parameters"]),
        },
    }


def _schema(given: dict[str, Any]) -> dict[str, Any]:
    schema = {**given, "type": _TYPES.get(str(given.get("type")), "string")}
    if "properties" in given:
        schema["properties"] = {name: _schema(one) for name, one in given["properties"].items()}
    if isinstance(given.get("items"), dict):
        schema["items"] = _schema(given["items"])
    return schema


def ask(client: httpx.Client, case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """The calls of an answer, its text, and its tokens."""
    body = {
        "model": options.model,
        "messages": case["question"][0],
        "tools": [tool_of(one) for one in case["function"]],
        "temperature": 0,
        "max_tokens": options.max_tokens,
        **json.loads(options.body),
    }
    began = time.monotonic()
    response = client.post("/v1/chat/completions", json=body)
    while response.status_code == httpx.codes.SERVICE_UNAVAILABLE:  # the model is being loaded
        time.sleep(2)
        response = client.post("/v1/chat/completions", json=body)
    if response.is_error:
        return {"calls": [], "error": response.text[:300]}
    answer = response.json()
    message = answer["choices"][0]["message"]
    return {
        "calls": [_call(one["function"]) for one in message.get("tool_calls") or []],
        "text": message.get("content"),
        "tokens": answer["usage"]["completion_tokens"],
        "seconds": round(time.monotonic() - began, 2),
    }


def _call(function: dict[str, Any]) -> dict[str, Any]:
    try:
        return {function["name"]: json.loads(function["arguments"])}
    except ValueError:
        return {function["name"]: function["arguments"]}


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Ask the cases that are missing; all results by set and case."""
    bfcl = Bfcl(cache_dir() / "bfcl")
    file: Path | None = options.json
    results: dict[str, Any] = {}
    if file and file.exists():
        results = json.loads(file.read_text())["cases"]
    wanted = [
        case
        for name in options.sets
        for case in bfcl.cases(name, in_order=options.in_order)[options.skip :][: options.cases]
    ]
    cases = [case for case in wanted if case["id"] not in results]
    with (
        httpx.Client(base_url=options.url, timeout=1200) as client,
        ThreadPoolExecutor(options.concurrency) as pool,
    ):
        for case, result in zip(
            cases, pool.map(lambda one: ask(client, one, options), cases), strict=True
        ):
            problem = result.get("error") or bfcl.problem(case, result["calls"])
            results[case["id"]] = {"set": case["set"], "problem": problem, **result}
            if file:
                write_result(
                    file, {"server": options.url, "model": options.model, "cases": results}
                )
    return {case["id"]: results[case["id"]] for case in wanted}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", help="its name at the server")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--cases", type=int, default=50, help="of each set")
    parser.add_argument("--skip", type=int, default=0, help="cases of each set before them")
    parser.add_argument("--in-order", action="store_true", help="not in random order")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--body", default="{}", help="further members of each request")
    parser.add_argument("--json", type=Path, help="keeps the results, and goes on from them")
    options = parser.parse_args()
    if options.model is None:
        options.model = httpx.get(f"{options.url}/v1/models").json()["data"][0]["id"]
    results = run(options)
    for name in options.sets:
        of_set = [one for one in results.values() if one["set"] == name]
        right = sum(one["problem"] is None for one in of_set)
        calls = Counter(len(one["calls"]) for one in of_set)
        tokens = sum(one.get("tokens", 0) for one in of_set) / max(1, len(of_set))
        share = right / max(1, len(of_set))
        print(
            f"{name:14} {share:5.2f}  {right}/{len(of_set)}  tokens {tokens:5.1f}  calls {dict(calls)}"
        )
    for id_, one in results.items():
        if one["problem"] is not None:
            print(f"  {id_}: {one['problem']}")


if __name__ == "__main__":
    main()
