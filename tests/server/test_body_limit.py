"""Limits of bodies: uploads have a larger one, and more time the more of them has arrived."""

import asyncio

import pytest

from app.server.middleware.body_limit import MIN_UPLOAD_RATE, BodyLimit
from app.server.wire.errors import ApiError

MEBIBYTE = 1024 * 1024


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


async def receive_all(path, sizes, *, seconds_each, max_upload_bytes=10 * MEBIBYTE):
    """How many bytes the application gets of a body whose pieces take some time each."""
    clock, received = Clock(), 0

    async def application(scope, receive, send):
        nonlocal received
        more = True
        while more:
            message = await receive()
            received += len(message["body"])
            more = message["more_body"]

    pieces = iter(sizes)
    left = len(sizes)

    async def receive():
        nonlocal left
        await asyncio.sleep(0)
        clock.now += seconds_each
        left -= 1
        return {"type": "http.request", "body": b"x" * next(pieces), "more_body": left > 0}

    limit = BodyLimit(
        application,
        max_bytes=MEBIBYTE,
        timeout_s=30,
        is_upload=lambda path: path == "/v1/files",
        max_upload_bytes=max_upload_bytes,
        clock=clock,
    )
    scope = {"type": "http", "method": "POST", "path": path, "headers": []}
    await limit(scope, receive, None)
    return received


async def test_an_upload_may_take_longer_than_other_bodies():
    pieces = [MEBIBYTE] * 8
    seconds = MEBIBYTE / MIN_UPLOAD_RATE  # exactly the least rate
    assert await receive_all("/v1/files", pieces, seconds_each=seconds) == 8 * MEBIBYTE


async def test_an_upload_that_is_too_slow_is_a_408():
    pieces = [MIN_UPLOAD_RATE] * 90
    with pytest.raises(ApiError) as caught:
        await receive_all("/v1/files", pieces, seconds_each=2)
    assert caught.value.status_code == 408


async def test_other_bodies_have_the_time_of_the_settings():
    with pytest.raises(ApiError) as caught:
        await receive_all("/v1/embeddings", [1000] * 40, seconds_each=1)
    assert caught.value.status_code == 408


@pytest.mark.parametrize(("path", "pieces"), [("/v1/files", 11), ("/v1/embeddings", 2)])
async def test_a_body_over_its_limit_is_a_413(path, pieces):
    with pytest.raises(ApiError) as caught:
        await receive_all(path, [MEBIBYTE] * pieces, seconds_each=0)
    assert caught.value.status_code == 413
