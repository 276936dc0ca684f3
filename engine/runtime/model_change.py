"""`ModelChange`: the replacement of a running engine's model, and the limit on waiting for its requests."""

from dataclasses import dataclass

from engine.api.config import EngineConfig
from engine.runtime.loading import Headers

CHANGE_DRAIN_S = 30.0
"""Time that running requests get to finish before the model is changed, unless the caller says less."""
MAX_CHANGE_DRAIN_S = 3600.0


@dataclass(frozen=True, slots=True)
class NextModel:
    """The model to load: its headers were read, so that an unusable one is refused before any change."""

    config: EngineConfig
    headers: Headers


@dataclass(frozen=True, slots=True)
class ModelChange:
    """One change of the model.

    Attributes:
        next: the model to load; None only unloads.
        deadline: the monotonic instant at which requests that still run are ended.
    """

    next: NextModel | None
    deadline: float

    @property
    def reason(self) -> str:
        """The error of requests that are ended at the deadline."""
        if self.next is None:
            return "The model was unloaded before the answer was complete."
        return f"The model was changed to {self.next.config.name} before the answer was complete."
