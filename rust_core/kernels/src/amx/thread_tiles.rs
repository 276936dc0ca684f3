//! Which threads hold tiles.
//!
//! A thread configures its tiles before its first product and gives them back when it goes to sleep or its job is
//! over: a sleeping thread should not keep 8 KiB of state to be saved, nor its core from resting deeply.

#[cfg(target_arch = "x86_64")]
use super::tiles::CONFIG;
#[cfg(target_arch = "x86_64")]
use std::cell::Cell;

#[cfg(target_arch = "x86_64")]
thread_local! {
    static CONFIGURED: Cell<bool> = const { Cell::new(false) };
}

/// Configure this thread's tiles, unless they are.
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

/// Give this thread's tiles back, if it holds them.
#[inline(always)]
pub(crate) fn release() {
    #[cfg(target_arch = "x86_64")]
    if CONFIGURED.get() {
        // SAFETY: tiles that are held may be released; nothing in them is used any more, since every product
        // begins and ends within one block of instructions.
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
