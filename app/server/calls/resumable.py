"""Streams that can be resumed: the field `resumable` of a request, and the response of its stream."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

from app.server.calls.event_stream import SERVER_SENT_EVENTS, EventStream, StreamForm
from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request
from app.server.wire.schemas import SamplingFields


def check_resumable(context: ServerContext, body: SamplingFields) -> None:
    """Refuse `resumable` without a stream, without an id to resume it by, or with one in use.

    Raises:
        ApiError: 400 that names the field.
    """
    if not body.resumable:
        return
    if not body.stream:
        raise bad_request("`resumable` is only allowed with `stream: true`.", param="resumable")
    if body.request_id is None:
        raise bad_request("`resumable` needs a `request_id` to resume by.", param="request_id")
    if context.kept_streams.is_running(body.request_id):
        raise bad_request(
            f"There is a resumable request {body.request_id!r} already.", param="request_id"
        )


async def stream_response(
    context: ServerContext,
    body: SamplingFields,
    events: AsyncGenerator[bytes, None],
    resources: AsyncExitStack,
    *,
    form: StreamForm = SERVER_SENT_EVENTS,
) -> EventStream:
    """The response that streams the events of a request, which `check_resumable` accepted.

    The resources are closed when the client leaves; those of a resumable request some time after.
    """
    if body.resumable and body.request_id is not None:
        await context.kept_streams.add(body.request_id, events, resources)
        events, resources = context.kept_streams.attach(body.request_id, after=0)
    return EventStream(events, context, resources, form=form)
