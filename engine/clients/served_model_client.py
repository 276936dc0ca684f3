"""`ServedModelClient`: the `EngineClient` of one of several models in this process."""

from collections.abc import Callable

from engine.api.errors import EngineUnavailable
from engine.api.request import Request, TokenBatch
from engine.api.snapshot import EngineSnapshot
from engine.clients.in_process import InProcessClient
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.served_model import ModelLease, ModelLoading, ServedModel
from engine.runtime.served_models import ServedModels


class ServedModelClient(InProcessClient):
    """Drives whichever engine has the model: a reload may replace it.

    A request holds a lease of the model until its last batch is drained, so that the model is not unloaded
    for being idle; a fork holds none: the engine keeps the model while it runs. Requests of a replaced engine
    are drained and cancelled as before.

    Args:
        models: the models of the process, which their owner closes.
        served: the model.
    """

    def __init__(self, models: ServedModels, served: ServedModel) -> None:
        super().__init__(served.engine)
        self._models = models
        self._served = served
        self._leases: dict[str, ModelLease] = {}
        self._wakers: list[Callable[[], None]] = []
        self._woken_by = served.engine

    @property
    def _engine(self) -> AsyncPravahaEngine:
        return self._follow(self._served.engine)

    def _follow(self, engine: AsyncPravahaEngine) -> AsyncPravahaEngine:
        """The engine, which wakes the front end from now on."""
        if engine is not self._woken_by:
            self._woken_by = engine
            for callback in self._wakers:
                engine.on_wake(callback)
        return engine

    def submit(self, request: Request) -> str:
        """Queue a request; see `EngineClient.submit`.

        Raises:
            EngineUnavailable: also if the model is not loaded: see `ModelSet.awaits`.
        """
        try:
            lease = self._models.use(self._served.name)
        except ModelLoading as loading:
            self._models.release(loading.lease)
            raise EngineUnavailable(str(loading)) from None
        try:
            handle = self._follow(lease.engine or self._served.engine).submit(request)
        except BaseException:
            self._models.release(lease)
            raise
        self._leases[handle.request_id] = lease
        self._handles[handle.request_id] = handle
        return handle.request_id

    def drain(self, request_id: str) -> TokenBatch | None:
        """All new tokens of the request, or None; the final batch removes the request."""
        batch = super().drain(request_id)
        if batch is not None and batch.finish_reason is not None:
            lease = self._leases.pop(request_id, None)
            if lease is not None:
                self._models.release(lease)
        return batch

    def snapshot(self) -> EngineSnapshot:
        """The engine at its last step boundary; `loading` also while the load waits for its turn."""
        return self._models.snapshot(self._served)

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Call `callback` when a mailbox becomes non-empty or the state changes."""
        self._wakers.append(callback)
        self._woken_by.on_wake(callback)

    def close(self) -> None:
        """Nothing: the owner of the models closes them."""

    def _engine_of(self, request_id: str) -> AsyncPravahaEngine:
        lease = self._leases.get(request_id)
        if lease is not None and lease.engine is not None:
            return lease.engine
        return self._models.engine_of(request_id, self._served.name)
