"""`ModelProfiles`: the profile of the loaded model, from what is known of it or by a short test."""

import asyncio
from dataclasses import replace

from agents.model.layout import SharedLayout
from agents.model.profile import CapabilityProfile
from agents.model.profile_record import known_profile
from agents.model.session import ModelSession
from agents.steps.measures.measure import SHORT, Measurement, Progress, Report, keep


class ModelProfiles:
    """The profiles of the models that one engine loads. Use from one event loop."""

    def __init__(
        self,
        session: ModelSession,
        given: CapabilityProfile | None = None,
        *,
        allow_model: bool = False,
    ) -> None:
        """Begin; nothing is asked of the engine yet.

        Args:
            session: the engine.
            given: the profile of every model; None looks it up or measures it.
            allow_model: allow a model everything, whatever was measured; an unknown model is not tested.
        """
        self._session = session
        self._given = given
        self._allow_model = allow_model
        self._found: dict[str, CapabilityProfile] = {}
        self._measurements: dict[str, Measurement] = {}
        self._measuring = asyncio.Lock()
        self._reports: list[Report] = []

    async def tested(self, report: Report | None = None) -> CapabilityProfile:
        """The loaded model's profile; looked up, or measured once.

        A cancelled measurement goes on with its next suite when the profile is asked for again.

        Args:
            report: told how far the measurement is; not called for a known model.

        Raises:
            ModelFailure: no model is loaded, or the engine failed.
        """
        if self._given is not None:
            return self._allowed(self._given)
        if report is not None:
            self._reports.append(report)
        try:
            async with self._measuring:
                identity = self._session.identity()
                if identity not in self._found:
                    known = known_profile(identity)
                    if known is None and self._allow_model:
                        return self._allowed(CapabilityProfile(identity))
                    self._found[identity] = known or await self._measured(identity)
                return self._allowed(self._found[identity])
        finally:
            if report is not None:
                self._reports.remove(report)

    async def untested(self) -> CapabilityProfile:
        """What is known of the loaded model, which is not tested.

        Raises:
            ModelFailure: no model is loaded.
        """
        if self._given is not None:
            return self._allowed(self._given)
        identity = self._session.identity()
        known = self._found.get(identity) or await asyncio.to_thread(known_profile, identity)
        return self._allowed(known or CapabilityProfile(identity))

    def _allowed(self, profile: CapabilityProfile) -> CapabilityProfile:
        return replace(profile, is_allowed=True) if self._allow_model else profile

    async def _measured(self, identity: str) -> CapabilityProfile:
        measurement = self._measurements.setdefault(identity, Measurement(SHORT))

        def report(progress: Progress) -> None:
            for one in tuple(self._reports):
                one(progress)

        record = await measurement.run(self._session, SharedLayout(self._session), report)
        del self._measurements[identity]
        await asyncio.to_thread(keep, identity, record)
        return record.profile(identity)
