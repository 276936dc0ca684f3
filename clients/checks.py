"""`Checks`: runs the checks of one client, prints a line for each, and counts what failed."""

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class Checks:
    """The checks of one client. A check that is expected to fail and passes counts as failed: take it off."""

    def __init__(self, client: str, *, expected_failures: frozenset[str] = frozenset()) -> None:
        self._client = client
        self._expected = expected_failures
        self._passed = self._failed = self._as_expected = 0

    @contextmanager
    def check(self, name: str) -> Iterator[None]:
        """One check: it passes unless its block raises."""
        try:
            yield
        except Exception as error:
            if name in self._expected:
                self._as_expected += 1
                print(f"expected failure  {name}: {_line(error)}", flush=True)
                return
            self._failed += 1
            print(f"FAILED            {name}: {_line(error)}", flush=True)
            traceback.print_exc(limit=-2)
            return
        if name in self._expected:
            self._failed += 1
            print(f"FAILED            {name}: it passes now; take it off the list", flush=True)
            return
        self._passed += 1
        print(f"passed            {name}", flush=True)

    def run(self, checks: Iterable[Callable[[], None]]) -> int:
        """Run functions, each a check under its name; the exit status."""
        for one in checks:
            with self.check(one.__name__):
                one()
        return self.report()

    def report(self) -> int:
        """Print the sums; the exit status."""
        sums = (
            f"{self._passed} passed, {self._as_expected} expected failures, {self._failed} failed"
        )
        print(f"{self._client}: {sums}")
        return int(self._failed > 0)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
