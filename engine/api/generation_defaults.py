"""`GenerationDefaults` of a model, and `SamplingChoice`: what a caller leaves to them."""

from dataclasses import dataclass, field, fields, replace

from engine.api.request import SamplingParams


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """A model's own sampling parameters, for requests that leave them out.

    The fields are those of `SamplingParams`; None where the model has none.

    Attributes:
        source: where they come from, for people; empty if there are none.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dry_allowed_length: int | None = None
    dry_penalty_last_n: int | None = None
    source: str = ""

    def values(self) -> dict[str, float | int]:
        """The parameters that the model has, by name."""
        named = ((name, getattr(self, name)) for name in DEFAULTED_PARAMETERS)
        return {name: value for name, value in named if value is not None}


DEFAULTED_PARAMETERS = tuple(one.name for one in fields(GenerationDefaults) if one.name != "source")
"""Names of the sampling parameters that a model may have defaults for."""


@dataclass(frozen=True, slots=True)
class SamplingChoice:
    """Sampling parameters of which some are left to the model.

    Attributes:
        params: the parameters for a model without defaults.
        chosen: names of those that the model's defaults do not replace.
        own: names of those that were chosen for one branch of a conversation, a subset of `chosen`.
    """

    params: SamplingParams = field(default_factory=SamplingParams)
    chosen: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()

    def for_model(self, defaults: GenerationDefaults) -> SamplingParams:
        """The parameters to use with a model."""
        left = {name: value for name, value in defaults.values().items() if name not in self.chosen}
        return replace(self.params, **left)  # type: ignore[arg-type]
