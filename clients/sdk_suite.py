"""What the suites of the official clients share: their tests are run against a server.

The tests are written for a stand-in that answers the examples of an API description, so their requests name
things that exist nowhere. `Between` stands before the server and puts real things in their place.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

Rewrite = Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]]
"""From path and body of a request, {} for one that has none, to those that are sent."""

OWN_TO_A_CONNECTION = (
    "host",
    "connection",
    "content-length",
    "accept-encoding",
    "transfer-encoding",
)


class Between(BaseHTTPRequestHandler):
    """Passes a request on after `rewrite`, and the answer back."""

    target: str
    rewrite: Rewrite

    def _pass_on(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_json = bool(data) and "json" in self.headers.get("content-type", "")
        path, body = type(self).rewrite(self.path, json.loads(data) if is_json else {})
        headers = {
            name: text
            for name, text in self.headers.items()
            if name.lower() not in OWN_TO_A_CONNECTION
        }
        sent = json.dumps(body).encode() if is_json else data
        request = urllib.request.Request(
            f"{self.target}{path}", sent or None, headers, method=self.command
        )
        try:
            answer = urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            content = answer.read()
        self.send_response(answer.status)
        for name, text in answer.headers.items():
            if name.lower() not in OWN_TO_A_CONNECTION:
                self.send_header(name, text)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _pass_on  # noqa: N815 the base class asks for these names

    def log_message(self, *_: Any) -> None:
        """Requests are not logged."""


def run_suite(
    package: str, version: str, paths: Sequence[str], url: str, prefix: str, rewrite: Rewrite,
    expected_failures: dict[str, str],
) -> int:  # fmt: skip
    """Run tests of a client, print what passed by resource; the exit status.

    Args:
        package, version: the client.
        paths: of tests, below `tests/api_resources`.
        url: of the server.
        prefix: of the address that the client is given, such as `/v1`.
        rewrite: puts real things in place of examples.
        expected_failures: names of tests, as patterns, and why they fail. One that passes counts as failed.
    """
    Between.target, Between.rewrite = url, staticmethod(rewrite)
    between = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    threading.Thread(target=between.serve_forever, daemon=True).start()
    source = tests_of(package, version, Path(sys.prefix))
    results = run_tests(source, paths, f"http://127.0.0.1:{between.server_port}{prefix}")
    between.shutdown()
    return reported(results, expected_failures)


def tests_of(package: str, version: str, folder: Path) -> Path:
    """A client's source distribution, which has its tests, unpacked."""
    source = folder / f"{package}-{version}"
    if not (source / "tests").exists():
        options = ["--no-deps", "--no-binary", package, "-q", "-d", folder]
        wanted = f"{package}=={version}"
        subprocess.run([sys.executable, "-m", "pip", "download", *options, wanted], check=True)
        shutil.unpack_archive(f"{source}.tar.gz", folder)
    return source


def run_tests(source: Path, paths: Sequence[str], url: str) -> list[tuple[str, str, str]]:
    """Resource, name and outcome of each test: `passed`, or why it failed."""
    report = source / "report.xml"
    report.unlink(missing_ok=True)
    options = ["-o", "addopts=", "-o", "junit_family=xunit1", "-q", f"--junitxml={report}"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", "--tb=line"]
        + [f"tests/api_resources/{one}" for one in paths],
        cwd=source,
        env={**os.environ, "TEST_API_BASE_URL": url},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    results = []
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        outcome = "passed" if problem is None else (problem.get("message") or "failed")
        file = case.get("file", "").removeprefix("tests/api_resources/").removesuffix(".py")
        results.append((file, case.get("name", "").partition("[")[0], outcome))
    return results


def reported(results: Sequence[tuple[str, str, str]], expected_failures: dict[str, str]) -> int:
    """Print the results by resource; the exit status."""
    sums: dict[str, Counter[str]] = {}
    failing = set()
    for file, name, outcome in results:
        test = f"{file}::{name}"
        expected = next((one for one in expected_failures if re.fullmatch(one, test)), None)
        kind = "passed" if outcome == "passed" else "expected failures" if expected else "failed"
        sums.setdefault(file, Counter())[kind] += 1
        if kind == "failed":
            print(f"FAILED            {test}: {outcome.splitlines()[0][:200]}")
        elif kind == "expected failures":
            failing.add(expected)
    for one in expected_failures.keys() - failing:
        print(f"FAILED            {one}: it passes now; take it off the list")
    for file, counts in sums.items():
        print(f"{file}: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
    total = sum(sums.values(), Counter())
    print(", ".join(f"{total[kind]} {kind}" for kind in ("passed", "expected failures", "failed")))
    passed = total["passed"] > 0 and total["failed"] == 0 and failing == expected_failures.keys()
    return int(not passed)
