"""What a killed process leaves in the database."""

import subprocess
import sys
import textwrap

from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeStatus

KILLED = """
    import os, signal, sys
    from engine.conversations.session import TreeSession
    from engine.conversations.storage.store import Store
    from tests.fakes.chat_toys import ToyClient

    class Clock:
        now = 0.0
        def __call__(self):
            return self.now

    clock, client, store = Clock(), ToyClient(), Store.open(__import__("pathlib").Path(sys.argv[1]))
    session = TreeSession(store, client, clock=clock)
    session.messages.send("first")
    client.write("whole", eos=True)
    session.pump()
    session.messages.send("second")
    client.write("half an ")
    clock.now = 1.0
    session.pump()
    store.writes.flush()
    print("saved", flush=True)
    sys.stdin.readline()
"""


def test_saved_text_of_a_killed_process_is_kept(file):
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "saved\n"
        # A live process keeps its streaming answer.
        beside = Store.open(file)
        (tree,) = beside.searches.trees()
        assert beside.nodes.path(beside.trees.head(tree.id))[-1].status is NodeStatus.STREAMING
        beside.close()
    finally:
        child.kill()
        child.communicate()
    store = Store.open(file)
    assert store.writes.take_notice() is None
    path = store.nodes.path(store.trees.head(tree.id))
    assert [(n.text, n.status.value) for n in path] == [
        ("first", "done"),
        ("whole", "done"),
        ("second", "done"),
        ("half an ", "stopped"),
    ]
    assert path[3].token_ids is not None
    assert len(path[3].logprobs) == len(path[3].token_ids)
    assert [t.id for t in store.searches.trees("half an")] == [tree.id]
    store.check_integrity()
    store.close()
