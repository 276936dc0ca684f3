//! The CPUs that this process may use: physical cores within the affinity mask and the cgroup quota.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Processors and quota of this process, read once.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Logical processors of the affinity mask, ascending.
    pub affinity: Vec<usize>,
    /// One logical processor for each physical core of the mask, ascending.
    pub cores: Vec<usize>,
    /// CPU quota of the cgroup, in CPUs; None without a limit.
    pub quota: Option<f64>,
}

impl Topology {
    pub fn detect() -> Self {
        let affinity = affinity_mask();
        let cores = one_per_core(&affinity, Path::new("/sys/devices/system/cpu"));
        Self {
            affinity,
            cores,
            quota: cgroup_quota(),
        }
    }

    /// Default number of threads: one per physical core, at most the quota rounded down, at least one.
    ///
    /// With more threads than the quota has CPUs, the kernel would stop all of them for the rest of each period.
    pub fn default_threads(&self) -> usize {
        let quota = self.quota.map_or(usize::MAX, |cpus| cpus as usize);
        self.cores.len().min(quota).max(1)
    }

    /// Whether `threads` threads can run at the same time all the time, so that waiting for one by spinning pays.
    pub fn can_spin(&self, threads: usize) -> bool {
        threads <= self.affinity.len() && self.quota.is_none_or(|cpus| threads as f64 <= cpus)
    }

    /// The core that thread `index` of `threads` is pinned to, if they occupy every core of the mask.
    ///
    /// Fewer threads are left to the kernel: two engines that each pinned theirs to the first cores would share
    /// these and leave the others idle. The same holds for containers with a quota on one host.
    pub fn pinned_core(&self, threads: usize, index: usize) -> Option<usize> {
        let whole = threads == self.cores.len() && self.quota.is_none();
        whole.then(|| self.cores[index])
    }
}

fn affinity_mask() -> Vec<usize> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: cpu_set_t is plain bits for which zero is a value; the call writes at most the
        // size it is told.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) == 0 {
                let cpus: Vec<usize> = (0..libc::CPU_SETSIZE as usize)
                    .filter(|&cpu| libc::CPU_ISSET(cpu, &set))
                    .collect();
                if !cpus.is_empty() {
                    return cpus;
                }
            }
        }
    }
    (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
}

/// Pin the calling thread to one processor; returns whether that succeeded.
pub fn pin_current_thread(cpu: usize) -> bool {
    #[cfg(target_os = "linux")]
    {
        if cpu >= libc::CPU_SETSIZE as usize {
            return false;
        }
        // SAFETY: as in `affinity_mask`; `cpu` is below the set's size.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = cpu;
        false
    }
}

/// The first processor of each core: SMT siblings share the execution units.
fn one_per_core(affinity: &[usize], sysfs: &Path) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    affinity
        .iter()
        .copied()
        .filter(|cpu| {
            let topology = sysfs.join(format!("cpu{cpu}/topology"));
            let read = |name: &str| fs::read_to_string(topology.join(name)).ok();
            match (read("physical_package_id"), read("core_id")) {
                (Some(package), Some(core)) => seen.insert((package, core)),
                _ => true,
            }
        })
        .collect()
}

fn cgroup_quota() -> Option<f64> {
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    quota_below(Path::new("/sys/fs/cgroup"), &membership)
}

/// The smallest quota between this process's group and the root (v2, then v1).
fn quota_below(root: &Path, membership: &str) -> Option<f64> {
    let mut tightest: Option<f64> = None;
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next(), fields.next(), fields.next());
        let (Some(controllers), Some(path)) = (controllers, path) else {
            continue;
        };
        let version2 = controllers.is_empty();
        if !version2 && !controllers.split(',').any(|name| name == "cpu") {
            continue;
        }
        let base = if version2 {
            root.to_path_buf()
        } else {
            root.join(controllers)
        };
        let mut group: PathBuf = base.join(path.trim_start_matches('/'));
        loop {
            let quota = if version2 {
                quota_v2(&group)
            } else {
                quota_v1(&group)
            };
            if let Some(cpus) = quota {
                tightest = Some(tightest.map_or(cpus, |least: f64| least.min(cpus)));
            }
            if group == base || !group.pop() {
                break;
            }
        }
    }
    tightest
}

fn quota_v2(group: &Path) -> Option<f64> {
    let text = fs::read_to_string(group.join("cpu.max")).ok()?;
    let mut fields = text.split_whitespace();
    ratio(fields.next()?, fields.next()?)
}

fn quota_v1(group: &Path) -> Option<f64> {
    let quota = fs::read_to_string(group.join("cpu.cfs_quota_us")).ok()?;
    let period = fs::read_to_string(group.join("cpu.cfs_period_us")).ok()?;
    ratio(quota.trim(), period.trim())
}

/// `max` and -1 mean no limit, and neither parses as a positive number.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("pravaha-topology-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn this_machine_has_a_core() {
        let topology = Topology::detect();
        assert!(!topology.cores.is_empty());
        assert!(
            topology
                .cores
                .iter()
                .all(|cpu| topology.affinity.contains(cpu))
        );
        assert!(topology.default_threads() >= 1);
    }

    #[test]
    fn threads_follow_the_quota() {
        let of = |quota| Topology {
            affinity: vec![0, 1, 2, 3],
            cores: vec![0, 1, 2, 3],
            quota,
        };
        assert_eq!(of(None).default_threads(), 4);
        assert_eq!(of(Some(1.5)).default_threads(), 1);
        assert_eq!(of(Some(2.0)).default_threads(), 2);
        assert_eq!(of(Some(0.2)).default_threads(), 1);
        assert!(of(Some(2.0)).can_spin(2));
        assert!(!of(Some(1.5)).can_spin(2));
        assert!(of(None).can_spin(4));
        assert!(!of(None).can_spin(5));
    }

    #[test]
    fn threads_are_pinned_only_if_they_occupy_every_core() {
        let of = |quota| Topology {
            affinity: vec![4, 5, 6, 7],
            cores: vec![4, 6],
            quota,
        };
        assert_eq!(of(None).pinned_core(2, 1), Some(6));
        assert_eq!(of(None).pinned_core(1, 0), None);
        assert_eq!(of(None).pinned_core(3, 1), None);
        assert_eq!(of(Some(2.0)).pinned_core(2, 1), None);
    }

    #[test]
    fn siblings_count_as_one_core() {
        let sysfs = scratch("siblings");
        for (cpu, core) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
            let topology = sysfs.join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("physical_package_id"), "0\n").unwrap();
            fs::write(topology.join("core_id"), format!("{core}\n")).unwrap();
        }
        assert_eq!(one_per_core(&[0, 1, 2, 3], &sysfs), [0, 2]);
        assert_eq!(one_per_core(&[1, 3], &sysfs), [1, 3]);
        fs::remove_dir_all(sysfs).unwrap();
    }

    #[test]
    fn the_tightest_quota_of_the_hierarchy_holds() {
        let root = scratch("quota");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/cpu.max"), "150000 100000\n").unwrap();
        fs::write(root.join("a/b/cpu.max"), "max 100000\n").unwrap();
        assert_eq!(quota_below(&root, "0::/a/b\n"), Some(1.5));
        assert_eq!(quota_below(&root, "0::/\n"), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn version_one_quotas_are_read() {
        let root = scratch("v1");
        fs::create_dir_all(root.join("cpu,cpuacct/x")).unwrap();
        fs::write(root.join("cpu,cpuacct/x/cpu.cfs_quota_us"), "50000\n").unwrap();
        fs::write(root.join("cpu,cpuacct/x/cpu.cfs_period_us"), "100000\n").unwrap();
        assert_eq!(
            quota_below(&root, "4:cpu,cpuacct:/x\n5:memory:/y\n"),
            Some(0.5)
        );
        fs::remove_dir_all(root).unwrap();
    }
}
