"""Leases of processes."""

from engine.conversations.storage import lease


def test_a_dead_lease_is_removed_and_a_live_one_kept(tmp_path):
    held = lease.WriterLease(tmp_path)
    (tmp_path / "DEAD").touch()
    assert lease.is_alive(tmp_path, held.id)
    assert lease.sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [held.id]
    assert not lease.sweep(tmp_path)
    held.release()
    held.release()
    assert not lease.is_alive(tmp_path, held.id)
