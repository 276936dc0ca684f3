"""`LiveRequests`: the table of accepted requests whose finish is not delivered yet."""

import threading

from engine.api.errors import EngineUnavailable, InvalidRequest, UnknownRequest
from engine.api.snapshot import EngineState
from engine.batch.request_queue import RequestQueue
from engine.batch.sequence import Sequence, SequenceState
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.loading import Opened


class LiveRequests:
    """Accepted requests by id, from `accept` until their finish is delivered. Any thread.

    The lifecycle's lock guards the table, so that no request is accepted after draining began.
    """

    def __init__(self, lifecycle: Lifecycle, waiting: RequestQueue) -> None:
        """Put accepted requests into the queue `waiting`."""
        self._lifecycle = lifecycle
        self._lock = lifecycle.lock
        self._waiting = waiting
        self._model: Opened | None = None
        self._live: dict[str, Sequence] = {}
        self._waiting_for_grammar: set[Sequence] = set()
        self._arrivals = 0
        self._empty = threading.Event()
        self._empty.set()

    @property
    def num_waiting(self) -> int:
        """Requests without a row: queued or waiting for their grammar."""
        return len(self._waiting) + len(self._waiting_for_grammar)

    def serve(self, model: Opened) -> None:
        """Accept requests for this model from now on, and no longer those for another. Engine's thread."""
        with self._lock:
            self._model = model

    def accept(self, *sequences: Sequence, model: Opened) -> None:
        """Number new requests, all or none, and queue those whose grammar is not being compiled.

        Args:
            sequences: the requests.
            model: the model that they were made for.

        Raises:
            InvalidRequest: an id is in use.
            QueueFull: not all of them fit into the queue.
            EngineUnavailable: draining, stopped or failed, or the model was changed meanwhile.
        """
        with self._lock:
            self._lifecycle.require(EngineState.LOADING, EngineState.READY)
            if model is not self._model:
                raise EngineUnavailable(
                    "The engine's model was changed while the request was prepared: send it again."
                )
            by_id = {sequence.request_id: sequence for sequence in sequences}
            for number, sequence in enumerate(sequences):
                if sequence.request_id in self._live or by_id[sequence.request_id] is not sequence:
                    raise InvalidRequest(
                        f"The request id {sequence.request_id} is in use.", param="request_id"
                    )
                sequence.record["arrival"] = self._arrivals + number
            compiling = SequenceState.WAITING_FOR_GRAMMAR
            self._waiting.put(*(one for one in sequences if one.state is not compiling))
            self._waiting_for_grammar.update(one for one in sequences if one.state is compiling)
            self._arrivals += len(sequences)
            self._live |= by_id
            self._empty.clear()

    def grammar_settled(self, sequence: Sequence) -> None:
        """Record that the grammar of a request was compiled or rejected. Engine's thread."""
        self._waiting_for_grammar.discard(sequence)

    def get(self, request_id: str) -> Sequence | None:
        """A live request, or None."""
        with self._lock:
            return self._live.get(request_id)

    def reserve_fork_numbers(self, request_id: str, n: int) -> tuple[Sequence, int]:
        """Reserve the numbers of `n` forks of a live request.

        Returns:
            The parent, and the number of its first new child, counted from 1 over all its forks.

        Raises:
            UnknownRequest: no live request has this id.
        """
        with self._lock:
            parent = self._live.get(request_id)
            if parent is None:
                raise UnknownRequest(
                    f"No live request has the id {request_id}; continue a finished one by "
                    "submitting its token ids.",
                    param="request_id",
                )
            first = parent.forks + 1
            parent.forks += n
            return parent, first

    def all(self) -> tuple[Sequence, ...]:
        """Every live request."""
        return tuple(self._live.values())

    def remove(self, sequence: Sequence) -> None:
        """Remove a request whose finish is being delivered. Engine's thread."""
        with self._lock:
            del self._live[sequence.request_id]
            self._waiting_for_grammar.discard(sequence)  # if it finished before its grammar
            if not self._live:
                self._empty.set()

    @property
    def empty(self) -> bool:
        """Whether no request is live."""
        return self._empty.is_set()

    def wait_empty(self, timeout: float | None) -> bool:
        """Block until no request is live; False after `timeout` seconds."""
        return self._empty.wait(timeout)
