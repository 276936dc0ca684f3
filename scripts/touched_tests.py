"""Print the test files that a change touches, one a line: what `make quick` runs.

A change is what differs from the common ancestor with `main`, committed or not. It touches a test file

* that changed itself;
* that imports a changed module or names it, as `monkeypatch.setattr` does;
* that is in the folder of tests which mirrors a changed module's, if no test file imports the module;
* that checks README, docs and Makefile, if one of these changed.

Imports are followed one step only, and tests of the real engine, of torch and of a whole terminal, which take
minutes, are printed only if they changed themselves: `make test` runs everything.
"""

import argparse
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
SLOW = ("tests/parity/", "tests/pty/", "tests/soak/", "tests/torch_executor/", "tests/embedding/")
DOCUMENTS = (PurePosixPath("."), PurePosixPath("docs"))
TESTS_OF_DOCUMENTS = ("tests/unit/project/",)


def touched(changed: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """The test files that a change touches.

    Args:
        changed: paths of the changed files, relative to the root.
        sources: the text of every test file, by path.
    """
    quick = {path: text for path, text in sources.items() if not path.startswith(SLOW)}
    found: set[str] = set()
    for path in map(PurePosixPath, changed):
        if str(path) in sources:
            found.add(str(path))
        elif path.suffix == ".py":
            found.update(_importing(path, quick) or _beneath(_mirrors(path), quick))
        elif path.parent in DOCUMENTS:
            found.update(_beneath(TESTS_OF_DOCUMENTS, quick))
    return sorted(found)


def _importing(module: PurePosixPath, sources: Mapping[str, str]) -> list[str]:
    """The files that import a module or name it in a string."""
    parts = module.with_suffix("").parts
    package = parts[-1] == "__init__"
    *parents, name = parts[:-1] if package else parts
    dotted = re.escape(".".join([*parents, name]))
    named = rf"\b{dotted}\b(?!\.)" if package else rf"\b{dotted}\b"
    imported = rf"\bfrom {re.escape('.'.join(parents))} import (\([^)]*|[^(\n]*)\b{name}\b"
    pattern = re.compile(f"{named}|{imported}" if parents else named)
    return [path for path, text in sources.items() if pattern.search(text)]


def _mirrors(module: PurePosixPath) -> tuple[str, ...]:
    """Where the tests of a module's folder may be: `tests/server/wire/` for `app/server/wire/chat.py`."""
    folder = module.parent
    if len(folder.parts) < 2:
        return (f"tests/unit/{folder}/",)
    if folder.parts[0] == "tests":
        return (f"{folder}/",)
    below = PurePosixPath(*folder.parts[1:])
    return f"tests/{below}/", f"tests/unit/{below}/", f"tests/unit/{folder}/"


def _beneath(folders: tuple[str, ...], sources: Mapping[str, str]) -> list[str]:
    return [path for path in sources if path.startswith(folders)]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.splitlines()


def main() -> None:
    """Print the test files that the working tree's change touches."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--base", default="main", help="what to compare with: a branch or commit")
    (fork,) = _git("merge-base", "HEAD", parser.parse_args().base)
    changed = _git("diff", "--name-only", fork) + _git("ls-files", "-o", "--exclude-standard")
    files = ROOT.glob("tests/**/test_*.py")
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in files}
    print("\n".join(touched(changed, sources)))


if __name__ == "__main__":
    main()
