"""Token data as bytes."""

from engine.api.request import TopLogprob
from engine.conversations.storage.blobs import (
    pack_flags,
    pack_ids,
    pack_logprobs,
    pack_top,
    unpack_flags,
    unpack_ids,
    unpack_logprobs,
    unpack_top,
)


def test_blobs_round_trip_with_the_stated_precision():
    ids = (0, 1, 2**32 - 1)
    assert unpack_ids(pack_ids(ids)) == ids
    assert len(pack_ids(ids)) == 12
    assert unpack_logprobs(pack_logprobs([0.0, -0.5, float("-inf"), -1e9])) == (
        0.0,
        -0.5,
        -65504.0,
        -65504.0,
    )
    top = ((TopLogprob(5, -0.25), TopLogprob(6, -3.0)), ())
    assert unpack_top(pack_top(top)) == top
    flags = (True, False, False, True, False, False, False, False, True)
    assert unpack_flags(pack_flags(flags), 9) == flags
    assert len(pack_flags(flags)) == 2
