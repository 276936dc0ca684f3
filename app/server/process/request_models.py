"""`RequestModels`: the models that one HTTP request uses, from their choice until the answer is sent."""

from collections.abc import Callable
from contextvars import ContextVar

from engine.api.errors import PravahaError
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.served_model import ModelChanging, ModelLease, ModelLoading
from engine.runtime.served_models import ServedModels


class RequestModels:
    """The leases of a request.

    Attributes:
        loading: the load that the request has to wait for; None if it has its models.
        failed: why a model that it waited for cannot be loaded.
    """

    def __init__(self, models: ServedModels, on_served: Callable[[], None]) -> None:
        """No leases; `on_served` is called when the request gets a model."""
        self._models = models
        self._on_served = on_served
        self._leases: list[ModelLease] = []
        self._engines: dict[str | None, AsyncPravahaEngine] = {}
        self._released = False
        self.loading: ModelChanging | None = None
        self.failed: PravahaError | None = None

    def take(self, name: str | None, keep_alive_s: float | None) -> AsyncPravahaEngine:
        """The engine of a model, which stays loaded until `release`; the same one in each call.

        A part of the request that goes on after its answer, in the background, gets engines without leases:
        what it has submitted keeps them.

        Raises:
            ModelNotFound, ModelError: as `ServedModels.use`.
            EngineUnavailable: the model is being loaded, which `loading` says, or cannot be.
        """
        if self.failed is not None:
            raise self.failed
        if name in self._engines and not self._released:
            if keep_alive_s is not None:
                self._models.set_keep_alive(name, keep_alive_s)
            return self._engines[name]
        try:
            lease = self._models.use(name, keep_alive_s=keep_alive_s)
        except ModelLoading as loading:
            self.loading = loading.change
            self._keep(loading.lease)
            raise
        self._keep(lease)
        self._on_served()
        if lease.engine is None:
            raise AssertionError("a lease of a model that can be used has an engine")
        self._engines[name] = lease.engine
        return lease.engine

    def _keep(self, lease: ModelLease) -> None:
        if self._released:
            self._models.release(lease)
        else:
            self._leases.append(lease)

    def release(self) -> None:
        """End all leases. Idempotent."""
        self._released = True
        leases, self._leases = self._leases, []
        for lease in leases:
            self._models.release(lease)


current_request_models: ContextVar[RequestModels | None] = ContextVar(
    "current_request_models", default=None
)
"""The models of the request that runs in this context."""
