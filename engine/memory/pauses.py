"""`Pauses`: how long a session is likely to be away, from the pauses that were observed.

The time to a session's return after `waited` seconds is estimated as

    mean + waited

where `mean` is an exponentially weighted mean of the session's pauses for the same tool, of all sessions'
for it if it had none, or a constant before any was observed. This is the mean residual life of a Lomax
distribution (K. S. Lomax, "Business failures", 1954) with shape 2: most pauses of tools are short and a
few are very long, so the longer one lasts the longer its rest is. An exponential distribution would have
the same rest at any time, and would never give a session up.
"""

from collections import OrderedDict

FIRST_TOOL_S = 5.0
"""The mean before any pause was observed."""
FIRST_PERSON_S = 60.0
"""As above, after an answer without calls: a person reads it."""
PERSON = "person"
"""The tool that an answer without calls waits for."""
WEIGHT = 0.25
"""Of the last pause in the mean; the earlier ones share the rest."""
PATIENCE = 4.0
"""A session counts as gone after so many means. Of Lomax pauses 1 in 25 is longer."""
MIN_PATIENCE_S = 2.0
MAX_KEYS = 1024


class Pauses:
    """Means of pauses by session and tool. Engine's thread only; O(1) per call."""

    def __init__(self) -> None:
        self._means: OrderedDict[tuple[str, str], float] = OrderedDict()

    def observe(self, session: str, tool: str, seconds: float) -> None:
        """Record that a session came back after `seconds` from a pause for `tool`."""
        for key in ((session, tool), ("", tool)):
            mean = self._means.get(key)
            self._means[key] = seconds if mean is None else mean + WEIGHT * (seconds - mean)
            self._means.move_to_end(key)
        while len(self._means) > MAX_KEYS:
            self._means.popitem(last=False)

    def mean(self, session: str, tool: str) -> float:
        """Expected seconds of a pause of this session for this tool when it begins."""
        own = self._means.get((session, tool))
        if own is None:
            own = self._means.get(("", tool))
        if own is None:
            return FIRST_PERSON_S if tool == PERSON else FIRST_TOOL_S
        return own

    def until_return(self, session: str, tool: str, waited: float) -> float:
        """Expected seconds to the return of a session that has been away for `waited` seconds."""
        return self.mean(session, tool) + waited

    def patience(self, session: str, tool: str) -> float:
        """Seconds after which a session is not expected back from a pause for this tool."""
        mean = max(self.mean(session, tool), self._means.get(("", tool), 0.0))
        return max(MIN_PATIENCE_S, PATIENCE * mean)
