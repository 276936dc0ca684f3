"""A queue of jobs."""


class JobQueue:
    """Jobs in the order of their arrival."""

    def __init__(self, limit: int = 10) -> None:
        self._limit = limit
        self._jobs: list[str] = []

    def put(self, job: str, urgent: bool = False, *, owner: str) -> int:
        """Add a job; raise OverflowError when the queue is full."""
        if len(self._jobs) >= self._limit:
            raise OverflowError(self._limit)
        self._jobs.insert(0 if urgent else len(self._jobs), f"{owner}:{job}")
        return len(self._jobs)

    def take(self) -> str:
        """Return the next job."""
        return self._jobs.pop(0)

    def size(self) -> int:
        """Return the number of jobs."""
        return len(self._jobs)
