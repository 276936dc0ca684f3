"""Streamed choices as batches: what an older server leaves out, and what a damaged one sends."""

import pytest

from engine.clients.http_wire import WireError, token_batch

CHOICE = {
    "text": "abc",
    "token_ids": [1, 2, 3],
    "finish_reason": None,
    "logprobs": None,
    "timings": {"scheduled": 0.0},
    "seed": 7,
    "cached_tokens": 0,
}


def read(**fields):
    return token_batch(CHOICE | fields, request_id="r", queued=1.0)


def test_indices_of_accepted_drafts_become_one_mark_per_token():
    assert read(accepted_drafts=[0, 2]).drafted == (True, False, True)
    assert read(accepted_drafts=[]).drafted == (False, False, False)


def test_an_older_server_does_not_report_accepted_drafts():
    assert read().drafted == ()


@pytest.mark.parametrize("indices", [[3], ["0"], 5])
def test_indices_that_are_none_are_refused(indices):
    with pytest.raises(WireError):
        read(accepted_drafts=indices)
