//! Scales and minima of a packed group as floats, for kernels that are generic over [`Lanes`].

use super::Panel;
use crate::pack::blocked::GroupScales;
use crate::pack::layout::{BLOCK_GROUPS, Offset, PANEL_COLUMNS, QuantLayout, Scales};
use crate::simd::{Lanes, ROUND};

/// A factor of a K-quant's block (0: of scales, 1: of minima) times the integers of the group's first or second array.
///
/// # Safety
/// The panel has the group; the level's instructions are enabled.
#[inline(always)]
unsafe fn product<L: Lanes>(
    layout: QuantLayout,
    panel: Panel,
    group: usize,
    factor: usize,
    array: usize,
) -> L {
    // SAFETY: the group's integers and the factors of its block, sixteen each.
    unsafe {
        let integers = panel.scales(layout, group).add(PANEL_COLUMNS * array);
        let factors = panel.block(layout, group).add(2 * PANEL_COLUMNS * factor);
        L::load_i8(integers.cast()).mul(L::load_f16(factors.cast()))
    }
}

/// The same with integers that are not stored as bytes: of the scales of part `part`, or of its minima.
///
/// # Safety
/// As [`product`].
#[inline(always)]
unsafe fn unpacked<L: Lanes>(
    layout: QuantLayout,
    panel: Panel,
    group: usize,
    factor: usize,
    part: usize,
) -> L {
    let block = panel.block(layout, group);
    // SAFETY: a block, which is longer than any header; its factors, sixteen each.
    unsafe {
        let scales = GroupScales {
            layout,
            header: &*block.cast(),
            group: group % BLOCK_GROUPS,
        };
        let integers = match factor {
            0 => scales.scale_integers(part),
            _ => scales.min_integers(part),
        };
        let factors = block.add(2 * PANEL_COLUMNS * factor);
        L::load_i8(integers.as_ptr()).mul(L::load_f16(factors.cast()))
    }
}

/// The scales of part `part` of group `group`. In layouts with pairs they are relative to the column scales, and not rounded yet
/// if the layout has blocks.
///
/// # Safety
/// The panel has the group; the level's instructions are enabled; the layout has no [`Scales::Pairs`].
#[inline(always)]
pub(super) unsafe fn scale<L: Lanes>(
    layout: QuantLayout,
    panel: Panel,
    group: usize,
    part: usize,
) -> L {
    let scales = panel.scales(layout, group);
    // SAFETY: the group's scales, sixteen for each part.
    unsafe {
        match layout.scales {
            Scales::Half => L::load_f16(scales.add(2 * PANEL_COLUMNS * part).cast()),
            Scales::Exponents => {
                let signed = L::load_i8(scales.cast());
                let byte = signed.select_less(L::splat(0.0), signed.add(L::splat(256.0)), signed);
                byte.add(L::splat(ROUND)).pow2_of_rounded()
            }
            Scales::Integers => L::load_i16(scales.cast()),
            Scales::Blocked => product(layout, panel, group, 0, part),
            Scales::BlockedNibbles | Scales::BlockedSixBits => {
                unpacked(layout, panel, group, 0, part)
            }
            Scales::Pairs => unreachable!("pairs are loaded whole"),
        }
    }
}

/// The minima of part `part` of group `group`; what is subtracted from a scale to yield the offset of a pair, in layouts with pairs.
///
/// # Safety
/// As [`scale`]; the layout has minima.
#[inline(always)]
pub(super) unsafe fn min<L: Lanes>(
    layout: QuantLayout,
    panel: Panel,
    group: usize,
    part: usize,
) -> L {
    debug_assert!(!matches!(layout.offset, Offset::ZeroPoint(_)));
    // SAFETY: the caller's promise.
    unsafe {
        match layout.scales {
            Scales::Half => L::load_f16(panel.scales(layout, group).add(2 * PANEL_COLUMNS).cast()),
            Scales::BlockedNibbles => unpacked(layout, panel, group, 1, part),
            _ => product(layout, panel, group, 1, 1),
        }
    }
}
