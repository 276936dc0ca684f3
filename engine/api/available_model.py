"""`AvailableModel`: a model that is installed where the engine runs, and whether it can be loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AvailableModel:
    """One installed model, from its headers.

    Attributes:
        name: the name that `load_model` takes.
        size: bytes of its files.
        architecture, parameters, weight_format, context_length: empty or 0 if it cannot be opened.
        active_parameters: of the parameters, those that a token uses; None for a model without experts.
        problem: why it cannot be loaded here; empty if it can.
        loaded: whether it is the engine's model now.
        status: its state where several models are loaded side by side, a value of `EngineState`; else empty.
        memory_bytes: what its weights, work buffers and KV pool take there now.
        loading_progress: the share of its weights that is loaded, 0 to 1, while `status` is loading.
    """

    name: str
    size: int
    architecture: str = ""
    parameters: int = 0
    weight_format: str = ""
    context_length: int = 0
    problem: str = ""
    loaded: bool = False
    status: str = ""
    memory_bytes: int = 0
    loading_progress: float = 0.0
    active_parameters: int | None = None

    @property
    def fits(self) -> bool:
        """Whether it can be loaded with the memory that is free once the current model is unloaded."""
        return not self.problem
