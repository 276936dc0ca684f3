//! Detection of AMX support in this process.
//!
//! Three conditions: the processor has AMX, the operating system saves tile state across context switches, and the kernel
//! has granted this process permission to use it. Linux grants it on request only, because every signal frame
//! grows by 8 KiB. The request is made once, when a level is first selected. That is before the executor starts its
//! threads, since the kernel refuses it if an existing alternate signal stack is too small.

use std::sync::OnceLock;

/// Why this process cannot use the tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmxUnavailable {
    #[error("the processor has no AMX-INT8")]
    Processor,
    #[error("the operating system does not save the state of AMX tiles")]
    OperatingSystem,
    #[error("the kernel cannot grant AMX tiles to a process: Linux 5.16 or newer is required")]
    OldKernel,
    #[error(
        "the kernel refused the AMX tiles: an alternate signal stack of this process is too small for their state"
    )]
    SignalStack,
    #[error("the kernel refused the AMX tiles (error {0})")]
    Refused(i32),
}

/// Whether this process may use the tiles. The first call requests permission from the kernel; the result is cached.
pub fn support() -> Result<(), AmxUnavailable> {
    static ANSWER: OnceLock<Result<(), AmxUnavailable>> = OnceLock::new();
    *ANSWER.get_or_init(|| decide(processor(), request))
}

/// What the processor and operating system report, before permission is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Processor {
    /// AMX-TILE and AMX-INT8, with tiles of the size that the kernels are written for.
    tiles: bool,
    /// The operating system has enabled both state components of the tiles (XTILECFG and XTILEDATA).
    state: bool,
}

/// Combine the processor's report with the kernel's reply to `request` (an error number if refused).
fn decide(
    processor: Processor,
    request: impl FnOnce() -> Result<(), i32>,
) -> Result<(), AmxUnavailable> {
    if !processor.tiles {
        return Err(AmxUnavailable::Processor);
    }
    if !processor.state {
        return Err(AmxUnavailable::OperatingSystem);
    }
    request().map_err(|error| match error {
        libc::EINVAL | libc::EOPNOTSUPP => AmxUnavailable::OldKernel,
        libc::ENOSPC => AmxUnavailable::SignalStack,
        other => AmxUnavailable::Refused(other),
    })
}

#[cfg(target_arch = "x86_64")]
fn processor() -> Processor {
    use std::arch::x86_64::__cpuid_count;
    const AMX_TILE_AND_INT8: u32 = 1 << 24 | 1 << 25;
    const OSXSAVE: u32 = 1 << 27;
    /// Tile configuration and tile data.
    const TILE_STATE: u32 = 1 << 17 | 1 << 18;
    // SAFETY: every x86-64 processor has the instruction; it reads registers. (Newer compilers call it safe.)
    #[allow(unused_unsafe)]
    let cpuid = |leaf, part| unsafe { __cpuid_count(leaf, part) };
    let tiles = cpuid(0, 0).eax >= 0x1d && {
        let palette = cpuid(0x1d, 1);
        // 1,024 bytes a tile and eight tiles; 64 bytes a row and 16 rows.
        cpuid(7, 0).edx & AMX_TILE_AND_INT8 == AMX_TILE_AND_INT8
            && cpuid(0x1d, 0).eax >= 1
            && (palette.eax >> 16, palette.ebx >> 16) == (1024, 8)
            && (palette.ebx & 0xffff, palette.ecx & 0xffff) == (64, 16)
    };
    let state = cpuid(1, 0).ecx & OSXSAVE != 0 && {
        let enabled: u32;
        // SAFETY: OSXSAVE means that user code may execute the instruction; it reads a register.
        unsafe {
            std::arch::asm!(
                "xgetbv", in("ecx") 0, out("eax") enabled, out("edx") _,
                options(nomem, nostack, preserves_flags, pure)
            );
        }
        enabled & TILE_STATE == TILE_STATE
    };
    Processor { tiles, state }
}

#[cfg(not(target_arch = "x86_64"))]
fn processor() -> Processor {
    Processor {
        tiles: false,
        state: false,
    }
}

/// Request permission to use tile data from Linux.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn request() -> Result<(), i32> {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XTILEDATA: libc::c_long = 18;
    // SAFETY: takes two integers and only changes which instructions this process may execute.
    let answer = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) };
    if answer == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(error.raw_os_error().unwrap_or_default())
}

/// Other operating systems have no such request and are not supported.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn request() -> Result<(), i32> {
    Err(libc::EOPNOTSUPP)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPABLE: Processor = Processor {
        tiles: true,
        state: true,
    };

    fn never() -> Result<(), i32> {
        panic!("permission was requested although the tiles are unavailable")
    }

    #[test]
    fn the_kernel_is_asked_only_where_tiles_exist() {
        let bare = Processor {
            tiles: false,
            ..CAPABLE
        };
        assert_eq!(decide(bare, never), Err(AmxUnavailable::Processor));
        let stateless = Processor {
            state: false,
            ..CAPABLE
        };
        assert_eq!(
            decide(stateless, never),
            Err(AmxUnavailable::OperatingSystem)
        );
        assert_eq!(decide(CAPABLE, || Ok(())), Ok(()));
    }

    #[test]
    fn a_refusal_is_reported_with_its_reason() {
        for (error, reason) in [
            (libc::EINVAL, AmxUnavailable::OldKernel),
            (libc::EOPNOTSUPP, AmxUnavailable::OldKernel),
            (libc::ENOSPC, AmxUnavailable::SignalStack),
            (libc::EPERM, AmxUnavailable::Refused(libc::EPERM)),
        ] {
            assert_eq!(decide(CAPABLE, || Err(error)), Err(reason));
        }
        assert!(
            AmxUnavailable::SignalStack
                .to_string()
                .contains("signal stack")
        );
    }

    #[test]
    fn support_is_constant() {
        assert_eq!(support(), support());
    }
}
