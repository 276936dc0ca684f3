//! Per-thread tile configuration.
//!
//! A thread configures its tiles before its first tile multiplication and releases them when it parks or its job ends.
//! Configured tiles would add 8 KiB to every context switch of a parked thread and keep its core from deep idle states.

#[cfg(target_arch = "x86_64")]
use super::tiles::CONFIG;
#[cfg(target_arch = "x86_64")]
use std::cell::Cell;

#[cfg(target_arch = "x86_64")]
thread_local! {
    static CONFIGURED: Cell<bool> = const { Cell::new(false) };
}

/// Configure this thread's tiles, unless they already are.
///
/// # Safety
/// The process may use the tiles (see `support.rs`).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn configure() {
    if !CONFIGURED.get() {
        // SAFETY: the instruction is allowed by contract and reads the 64 bytes of the configuration.
        unsafe {
            std::arch::asm!(
                "ldtilecfg [{}]", in(reg) &raw const CONFIG,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags, readonly)
            );
        }
        CONFIGURED.set(true);
    }
}

/// Release this thread's tiles, if they are configured.
#[inline(always)]
pub(crate) fn release() {
    #[cfg(target_arch = "x86_64")]
    if CONFIGURED.get() {
        // SAFETY: configured tiles may be released; they hold no live data, since every tile multiplication
        // loads and stores its tiles within one assembly block.
        unsafe {
            std::arch::asm!(
                "tilerelease",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nomem, nostack, preserves_flags)
            );
        }
        CONFIGURED.set(false);
    }
}
