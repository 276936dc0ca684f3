"""`installed_profile`: what the model of the settings was measured to do, without loading it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.model.profile import CapabilityProfile
    from app.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class InstalledProfile:
    """A model and its profile; None if it was not measured yet."""

    name: str
    profile: "CapabilityProfile | None"


def installed_profile(settings: "Settings") -> InstalledProfile:
    """The model that the settings name, with its profile. Reads headers and samples of its files.

    Raises:
        ModelError: it is not installed, or is no usable model. Nothing is fetched.
    """
    from agents.model.identity import file_identity
    from agents.model.profile_record import known_profile
    from engine.executors.open_model import open_model
    from engine.models.content_digest import content_digest
    from engine.models.store import ModelStore

    found = ModelStore(settings.models).get(settings.model)
    model = open_model(found.path)
    identity = file_identity(content_digest(model.paths), model.tokenizer.fingerprint)
    return InstalledProfile(found.name, known_profile(identity))
