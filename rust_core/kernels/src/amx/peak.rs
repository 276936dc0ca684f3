//! The rate of byte products on full tiles: what a roofline of the level stands on.

use super::held::release;
use super::tiles::TileConfig;

/// Multiplications and additions of one round of [`products`].
pub const OPERATIONS_A_ROUND: usize = 4 * 2 * 16 * 16 * 64;

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

/// Four products a round, of registers alone: two tiles of rows with two of columns, as many sums as cover the
/// instruction's latency.
///
/// # Safety
/// [`super::support::support`] said that this process may use the tiles.
pub unsafe fn products(rounds: usize) {
    if rounds == 0 {
        return;
    }
    release(); // a kernel's configuration does not survive this
    // SAFETY: the instructions are allowed by contract; no memory but the configuration is read, and the tiles
    // are back in their first state at the end.
    unsafe {
        std::arch::asm!(
            "ldtilecfg [{config}]",
            "2:",
            "tdpbsud tmm0, tmm4, tmm6",
            "tdpbsud tmm1, tmm4, tmm7",
            "tdpbsud tmm2, tmm5, tmm6",
            "tdpbsud tmm3, tmm5, tmm7",
            "dec {rounds}",
            "jnz 2b",
            "tilerelease",
            config = in(reg) &raw const FULL,
            rounds = inout(reg) rounds => _,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, readonly)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amx::support::support;

    #[test]
    fn rounds_end() {
        if let Err(reason) = support() {
            eprintln!("skipped: {reason}");
            return;
        }
        // SAFETY: just asked.
        unsafe {
            products(0);
            products(1000);
        }
    }
}
