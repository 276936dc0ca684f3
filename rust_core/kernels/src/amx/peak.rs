//! Peak rate of full-tile multiplications, for the roofline of level `amx`.

use super::support::support;
use super::thread_tiles::release;
use super::tiles::TileConfig;

/// Multiplications and additions per round of [`int8`].
const INT8_OPERATIONS: usize = 4 * 2 * 16 * 16 * 64;

/// The same for [`bf16`], of which a tile holds half as many elements.
const BF16_OPERATIONS: usize = INT8_OPERATIONS / 2;

/// Eight full tiles of 16 rows of 64 bytes.
static FULL: TileConfig = {
    let mut config = TileConfig {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        row_bytes: [0; 16],
        rows: [0; 16],
    };
    let mut tile = 0;
    while tile < 8 {
        (config.rows[tile], config.row_bytes[tile]) = (16, 64);
        tile += 1;
    }
    config
};

/// Whether this process may use AMX tiles and they support bf16.
pub fn has_bf16() -> bool {
    const AMX_BF16: u32 = 1 << 22;
    // SAFETY: every x86-64 processor has the instruction; those with AMX have leaf 7. (Newer compilers call it safe.)
    #[allow(unused_unsafe)]
    let features = || unsafe { std::arch::x86_64::__cpuid_count(7, 0).edx };
    support().is_ok() && features() & AMX_BF16 != 0
}

/// Define a function that runs four register-only tile multiplications per round: two row tiles with two column tiles, enough
/// accumulators to cover the instruction's latency. It returns the number of operations.
macro_rules! peak_loop {
    ($name:ident, $instruction:literal, $operations:expr) => {
        /// # Safety
        /// This process may use the tiles and the instruction.
        pub unsafe fn $name(rounds: usize) -> usize {
            release(); // this loop replaces the kernels' configuration
            // SAFETY: the instructions are allowed by contract; no memory but the configuration is read, and the
            // tiles are released at the end.
            unsafe {
                std::arch::asm!(
                    "ldtilecfg [{config}]",
                    "2:",
                    concat!($instruction, " tmm0, tmm4, tmm6"),
                    concat!($instruction, " tmm1, tmm4, tmm7"),
                    concat!($instruction, " tmm2, tmm5, tmm6"),
                    concat!($instruction, " tmm3, tmm5, tmm7"),
                    "dec {rounds}",
                    "jnz 2b",
                    "tilerelease",
                    config = in(reg) &raw const FULL,
                    rounds = inout(reg) rounds.max(1) => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack, readonly)
                );
            }
            rounds.max(1) * $operations
        }
    };
}

peak_loop!(int8, "tdpbsud", INT8_OPERATIONS);
peak_loop!(bf16, "tdpbf16ps", BF16_OPERATIONS);
