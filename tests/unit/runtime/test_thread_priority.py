"""The engine's threads get a lower priority only with `niceness` set."""

import os
import sys
import threading

import pytest

from tests.fakes.toy_engine import ask, toy_config, toy_engine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities on Linux")


def priority():
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def steps_at(niceness):
    """The niceness of the engine's thread, and of one that it starts."""
    engine, executor = toy_engine(toy_config(niceness=niceness))
    seen = []

    def watch(plan):
        child = threading.Thread(target=lambda: seen.append((stepping, priority())))
        stepping = priority()
        child.start()
        child.join()

    executor.watch = watch
    engine.start()
    try:
        engine.submit(ask(max_tokens=1)).wait_result(60)
    finally:
        engine.shutdown()
    return seen[0]


@pytest.mark.parametrize(("niceness", "lower"), [(0, 0), (5, 5), (40, None)])
def test_only_the_engines_threads_get_a_lower_priority(niceness, lower):
    before = priority()
    expected = min(19, before + (niceness if lower is None else lower))
    assert steps_at(niceness) == (expected, expected)
    assert priority() == before
