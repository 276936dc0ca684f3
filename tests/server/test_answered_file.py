"""The answered turns of a server are there again after a restart; a damaged file is left out."""

import signal
import stat
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.process.answered_file import answered_file, restore_answered, save_answered
from app.server.process.answered_turns import KEY_BYTES, AnsweredTurns, ConversationKey
from engine.api.config import EngineConfig
from tests.server.process import toy_process
from tests.server.toy_tokenizer import END_OF_TEXT

USER = {"role": "user", "content": "hi"}
ANSWER = {"role": "assistant", "content": "okay"}


def kept_turns():
    turns = AnsweredTurns()
    turns.add(ConversationKey([USER], {"model": "a"}), ANSWER, [1, 2, 3])
    turns.add(ConversationKey([USER, ANSWER, USER], {"model": "a"}), ANSWER, [1, 2, 3, 4, 5])
    return turns


def saved(path):
    save_answered(kept_turns(), path)
    return path


def restored(path, **limits):
    turns = AnsweredTurns(**limits)
    restore_answered(turns, path)
    return [(key, list(ids)) for key, ids in turns.entries()]


def test_they_come_back_in_their_order(tmp_path):
    path = saved(tmp_path / "swap" / "turns.npz")
    assert restored(path) == [(key, list(ids)) for key, ids in kept_turns().entries()]
    turns = AnsweredTurns()
    restore_answered(turns, path)
    found = turns.find(ConversationKey([USER, ANSWER, USER], {"model": "a"}))
    assert (found.answer, list(found.ids)) == (1, [1, 2, 3])


def test_only_the_owner_can_read_it(tmp_path):
    assert stat.S_IMODE(saved(tmp_path / "turns.npz").stat().st_mode) == 0o600


def test_the_last_used_ones_fit(tmp_path):
    path = saved(tmp_path / "turns.npz")
    assert [ids for _, ids in restored(path, max_bytes=20)] == [[1, 2, 3, 4, 5]]


def test_without_a_file_there_is_nothing(tmp_path):
    assert restored(tmp_path / "turns.npz") == []


@pytest.mark.parametrize(
    "changed",
    [
        {"keys": np.zeros(3, np.uint8)},
        {"lengths": np.array([9, -1], np.int64)},
        {"lengths": np.array([3, 6], np.int64)},
        {"ids": np.zeros(8, np.float64)},
    ],
)
def test_sizes_that_do_not_agree_are_left_out(tmp_path, caplog, changed):
    path = tmp_path / "turns.npz"
    arrays = {
        "keys": np.zeros(2 * KEY_BYTES, np.uint8),
        "lengths": np.array([3, 5], np.int64),
        "ids": np.zeros(8, np.int32),
    }
    np.savez(path, **(arrays | changed))
    assert restored(path) == []
    assert "left out" in caplog.text


@given(data=st.binary(max_size=64), at=st.integers(0, 2000), cut=st.booleans())
def test_damaged_bytes_never_stop_the_start(tmp_path_factory, data, at, cut):
    path = saved(tmp_path_factory.mktemp("turns") / "turns.npz")
    good = path.read_bytes()
    at = min(at, len(good))
    path.write_bytes(good[:at] + data + (b"" if cut else good[at + len(data) :]))
    for key, _ in restored(path):
        assert len(key) == KEY_BYTES


def test_it_stands_beside_the_swapped_blocks():
    config = EngineConfig(Path("m"), "m", swap_bytes=1, swap_dir=Path("swap"))
    assert answered_file(config) == Path("swap/answered_turns.npz")
    assert answered_file(EngineConfig(Path("m"), "m", swap_dir=Path("swap"))) is None
    assert answered_file(EngineConfig(Path("m"), "m", swap_bytes=1)) is None


def test_a_conversation_goes_on_in_the_next_process(tmp_path):
    written = b" " + b"o" * 60  # without its first space it has no block in common with this
    force = {**dict(enumerate(written)), len(written): END_OF_TEXT}
    engine = {"force": force, "swap_bytes": 1 << 24, "swap_dir": str(tmp_path), "context": 2048}
    usages = []
    messages = [USER | {"content": "x" * 300}]
    for _ in range(2):
        with toy_process(engine=engine | {"block_size": 4}) as server:
            body = {"model": "toy", "messages": messages}
            answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60).json()
            usages.append(answer["usage"])
            said = answer["choices"][0]["message"]["content"].strip()
            messages = [*messages, {"role": "assistant", "content": said}, USER]
            server.signal(signal.SIGTERM)
            assert server.exit_status() == 0
    assert (tmp_path / "answered_turns.npz").exists()
    computed = usages[0]["prompt_tokens"] + len(written)
    assert usages[1]["prompt_tokens_details"]["cached_tokens"] > computed - 4  # of the last block
