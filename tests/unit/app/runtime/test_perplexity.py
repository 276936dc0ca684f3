"""Scoring a text: windows, sums, and what is refused."""

import json
import math

import hypothesis.strategies as st
import pytest
from hypothesis import given
from typer.testing import CliRunner

from app.cli import cli
from app.commands import score as score_command
from app.runtime.opening import OpenClient
from app.runtime.perplexity import TextScore, score_text, windows
from engine.api.errors import InvalidRequest
from engine.clients.in_process import InProcessClient
from engine.executors.reference_sampler import log_softmax
from tests.fakes.toy_engine import toy_config, toy_engine
from tests.fakes.toy_executor import toy_logits

TEXT = "The quick brown fox jumps over the lazy dog; the dog minds little."


@pytest.fixture
def client():
    engine, _ = toy_engine(toy_config(blocks=200), context=32)
    client = InProcessClient(engine)
    engine.start()
    engine.wait_ready(30)
    yield client
    client.close()


@given(
    count=st.integers(1, 300),
    size=st.integers(2, 60),
    stride=st.integers(1, 59),
    first=st.integers(0, 1),
)
def test_windows_score_every_token_once_with_as_much_context_as_fits(count, size, stride, first):
    stride = min(stride, size - 1)
    scored = []
    for number, window in enumerate(windows(count, size, stride, first=first)):
        assert 0 <= window.start < window.stop <= count
        assert window.stop - window.start == min(size, count)
        scored += range(window.first, window.stop)
        if number:
            assert 0 < window.stop - window.first <= stride
            assert window.first - window.start >= size - stride
    assert scored == list(range(first, count))


def by_hand(ids, size, stride, lead=()):
    total = 0.0
    for window in windows(len(ids), size, stride, first=1 - len(lead)):
        for at in range(window.first, window.stop):
            history = [*lead, *ids[window.start : at]]
            total -= float(log_softmax(toy_logits(history))[ids[at]])
    return total


@pytest.mark.parametrize("stride", [1, 7, 16, 31])
def test_a_text_in_windows(client, stride):
    ids = client.tokenize(TEXT)
    seen = []
    score = score_text(
        client, TEXT, context=32, stride=stride, progress=lambda *step: seen.append(step)
    )
    assert score.total == pytest.approx(by_hand(ids, 32, stride), rel=1e-6)
    assert (score.tokens, score.text_bytes) == (len(ids) - 1, len(TEXT) - 1)
    assert score.windows == len(seen) == 1 + math.ceil((len(ids) - 32) / stride)
    assert seen[-1] == (len(ids), len(ids))


def test_a_models_first_token_leads_each_window_and_is_not_scored(client):
    ids = client.tokenize(TEXT)
    score = score_text(client, TEXT, context=32, stride=10, bos=5)
    assert score.total == pytest.approx(by_hand(ids, 31, 10, lead=(5,)), rel=1e-6)
    assert (score.tokens, score.text_bytes) == (len(ids), len(TEXT))


def test_figures_follow_from_the_sum():
    score = TextScore(tokens=4, text_bytes=8, total=8.0, windows=1)
    assert score.mean == 2.0
    assert score.perplexity == pytest.approx(math.e**2)
    assert score.bits_per_byte == pytest.approx(1 / math.log(2))
    assert TextScore(1, 1, math.inf, 1).perplexity == math.inf


@pytest.mark.parametrize("text", ["", "a"])
def test_too_short(client, text):
    with pytest.raises(InvalidRequest, match="too short"):
        score_text(client, text, context=32, stride=16)


@pytest.mark.parametrize("stride", [0, 32])
def test_a_stride_that_skips_or_stands_still(client, stride):
    with pytest.raises(InvalidRequest, match="stride must be between 1 and 31"):
        score_text(client, TEXT, context=32, stride=stride)


def test_the_command_prints_lines_or_an_object(client, tmp_path, capsys):
    file = tmp_path / "text"
    file.write_text(TEXT)
    opened = OpenClient(client, bos=lambda: None, start=lambda: None)
    score_command.score_file(opened, str(file), stride=None, as_json=True)
    report = json.loads(capsys.readouterr().out)
    expected = score_text(client, TEXT, context=32, stride=16)
    assert report["perplexity"] == pytest.approx(expected.perplexity)
    assert report["bits_per_byte"] == pytest.approx(expected.bits_per_byte)
    assert (report["context"], report["stride"], report["tokens"]) == (32, 16, expected.tokens)
    score_command.score_file(opened, str(file), stride=8, as_json=False)
    assert f"perplexity     {score_text(client, TEXT, context=32, stride=8).perplexity:.4f}" in (
        capsys.readouterr().out
    )


def test_a_file_that_is_no_text_and_one_that_is_not_there(tmp_path):
    file = tmp_path / "binary"
    file.write_bytes(b"ab\xff\xfe")
    with pytest.raises(InvalidRequest, match="byte 2 is 0xff"):
        score_command.read_text(str(file))
    with pytest.raises(InvalidRequest, match="cannot be read"):
        score_command.read_text(str(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--score", "x", "hello"], "--score"),
        (["--score", "x", "--raw"], "--raw"),
        (["--score", "x", "--temperature", "1"], "--temperature"),
        (["--stride", "5", "hello"], "--stride"),
        ([], "Missing argument"),
    ],
)
def test_contradictions_are_refused(arguments, named):
    result = CliRunner().invoke(cli, ["run", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert named in result.output
