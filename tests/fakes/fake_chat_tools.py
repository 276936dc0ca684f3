"""Tools of the screen's chat whose results are given by a test."""

from concurrent.futures import Future

from engine.api.tools import CallResult, Tool, ToolRound


class FakeChatTools:
    """In place of `ChatTools`, its own open tools as well.

    Args:
        results: for each answer with calls, the state and the text of each call; after them calls run on.

    Attributes:
        waiting: names of the tools whose call waits for an approval.
    """

    form, decision = "auto", "auto"

    def __init__(self, names, *results):
        self.chosen = tuple(names)
        self.waiting = frozenset()
        self.wake = lambda: None
        self._results = list(results)

    def open(self, tree_id, text, *, has_results):
        return self

    def offered(self):
        return _done([Tool(name) for name in self.chosen])

    def act(self, calls):
        if not self._results:
            return Future()
        given = self._results.pop(0)
        results = [
            CallResult(call, text, state, 0.25)
            for call, (state, text) in zip(calls, given, strict=True)
        ]
        return _done(ToolRound(results, True))

    def close(self):
        pass


def _done(value):
    future = Future()
    future.set_result(value)
    return future
