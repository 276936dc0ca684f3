"""`Requests`: calls the handler of each method with checked parameters.

The schema of the protocol checks the parameters; what is wrong is said in one sentence. Members under
`_meta` are no parameters.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from acp.exceptions import RequestError
from pydantic import BaseModel, ValidationError

from engine.api.errors import PravahaError

INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL = -32603
NOT_FOUND = -32002

Handler = Callable[[Any], Awaitable[BaseModel | None]]
_log = logging.getLogger(__name__)


class Requests:
    """The methods that are answered, each with the model of its parameters and its handler."""

    def __init__(self, methods: Mapping[str, tuple[type[BaseModel], Handler]]) -> None:
        self._methods = methods

    async def __call__(self, method: str, params: Any, is_notification: bool) -> Any:
        """Answer a request; the result as JSON members. Notifications that are unknown are ignored.

        Raises:
            RequestError: it cannot be answered.
        """
        known = self._methods.get(method)
        if known is None:
            if is_notification:
                return None
            raise RequestError(-32601, f"There is no method {method[:80]}.")
        model, handler = known
        try:
            given = model.model_validate({} if params is None else params)
        except ValidationError as error:
            raise RequestError(INVALID_PARAMS, _sentence(method, error)) from None
        except RecursionError:
            raise RequestError(INVALID_PARAMS, f"{method}: nested too deeply.") from None
        try:
            result = await handler(given)
        except PravahaError as error:
            raise RequestError(INTERNAL, str(error)) from error
        except RequestError:
            raise
        except Exception as error:
            _log.exception("%s failed", method)
            raise RequestError(INTERNAL, f"{type(error).__name__}: {error!s:.300}") from error
        if result is None:
            return {}
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def _sentence(method: str, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "params"
    return f"{method}: {where}: {first['msg']}."
