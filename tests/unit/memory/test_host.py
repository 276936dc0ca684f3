import pytest

from engine.memory.host import available_memory


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def root(tmp_path):
    write(tmp_path, "proc/meminfo", "MemTotal: 2000 kB\nMemAvailable: 1000 kB\n")
    return tmp_path


def test_machine_alone(root):
    assert available_memory(root) == 1000 * 1024


def test_control_group_v2_limit_counts_if_tighter(root):
    write(root, "proc/self/cgroup", "0::/a/b\n")
    write(root, "sys/fs/cgroup/a/b/memory.max", "max\n")
    write(root, "sys/fs/cgroup/a/b/memory.current", "50\n")
    assert available_memory(root) == 1000 * 1024
    write(root, "sys/fs/cgroup/a/memory.max", "5000\n")
    write(root, "sys/fs/cgroup/a/memory.current", "2000\n")
    assert available_memory(root) == 3000


def test_control_group_v1(root):
    write(root, "proc/self/cgroup", "5:cpu,memory:/c\n1:name=systemd:/\n")
    write(root, "sys/fs/cgroup/memory/c/memory.limit_in_bytes", str(2**63 - 4096))
    write(root, "sys/fs/cgroup/memory/c/memory.usage_in_bytes", "1")
    assert available_memory(root) == 1000 * 1024
    write(root, "sys/fs/cgroup/memory/c/memory.limit_in_bytes", "700")
    assert available_memory(root) == 699


def test_cached_files_of_a_control_group_are_available(root):
    """A model that was just fetched would otherwise be counted as memory in use."""
    statistics = "anon 600\nactive_file 300\ninactive_file 1000\n"
    write(root, "proc/self/cgroup", "0::/a\n")
    write(root, "sys/fs/cgroup/a/memory.max", "5000\n")
    write(root, "sys/fs/cgroup/a/memory.current", "2000\n")
    write(root, "sys/fs/cgroup/a/memory.stat", statistics)
    assert available_memory(root) == 5000 - (2000 - 1300)
    write(root, "proc/self/cgroup", "5:cpu,memory:/c\n")
    write(root, "sys/fs/cgroup/memory/c/memory.limit_in_bytes", "5000")
    write(root, "sys/fs/cgroup/memory/c/memory.usage_in_bytes", "2000")
    write(
        root,
        "sys/fs/cgroup/memory/c/memory.stat",
        statistics + "total_active_file 400\ntotal_inactive_file 1200\n",
    )
    assert available_memory(root) == 5000 - (2000 - 1600)


def test_a_control_group_over_its_limit_has_no_memory_left(root):
    write(root, "proc/self/cgroup", "0::/\n")
    write(root, "sys/fs/cgroup/memory.max", "10\n")
    write(root, "sys/fs/cgroup/memory.current", "20\n")
    assert available_memory(root) == 0


def test_an_unknown_machine_is_an_error(tmp_path):
    with pytest.raises(OSError, match="meminfo"):
        available_memory(tmp_path)


def test_this_machine_has_available_memory():
    assert available_memory() > 0
