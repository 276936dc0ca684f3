//! Codes of formats whose nibbles index a table of values.
//!
//! A weight is `scale * (codes[nibble] - ZERO_POINT)`. Packed weights hold the file's nibbles; kernels look up the codes.

use crate::quant::{FP4_VALUES, IQ4_VALUES};

/// The code of the value 0.
pub const ZERO_POINT: i32 = 128;

/// A table of codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Of IQ4_NL and IQ4_XS.
    IQ4,
    /// Of MXFP4: twice the values of 4-bit floats.
    FP4,
}

impl Table {
    /// The codes of the sixteen nibbles.
    pub const fn codes(self) -> &'static [u8; 16] {
        const IQ4: [u8; 16] = codes(&IQ4_VALUES);
        const FP4: [u8; 16] = codes(&FP4_VALUES);
        match self {
            Self::IQ4 => &IQ4,
            Self::FP4 => &FP4,
        }
    }

    /// The same as floats.
    pub const fn floats(self) -> &'static [f32; 16] {
        const IQ4: [f32; 16] = floats(Table::IQ4.codes());
        const FP4: [f32; 16] = floats(Table::FP4.codes());
        match self {
            Self::IQ4 => &IQ4,
            Self::FP4 => &FP4,
        }
    }

    /// The nibble of each code of the table.
    pub const fn nibbles(self) -> &'static [u8; 256] {
        const IQ4: [u8; 256] = nibbles(Table::IQ4.codes());
        const FP4: [u8; 256] = nibbles(Table::FP4.codes());
        match self {
            Self::IQ4 => &IQ4,
            Self::FP4 => &FP4,
        }
    }
}

const fn codes(values: &[i8; 16]) -> [u8; 16] {
    let mut codes = [0; 16];
    let mut nibble = 0;
    while nibble < 16 {
        codes[nibble] = (values[nibble] as i32 + ZERO_POINT) as u8;
        nibble += 1;
    }
    codes
}

const fn floats(codes: &[u8; 16]) -> [f32; 16] {
    let mut floats = [0.0; 16];
    let mut nibble = 0;
    while nibble < 16 {
        floats[nibble] = codes[nibble] as f32;
        nibble += 1;
    }
    floats
}

const fn nibbles(codes: &[u8; 16]) -> [u8; 256] {
    let mut nibbles = [0; 256];
    let mut nibble = 16;
    // Backwards: of two nibbles with the same value, the first.
    while nibble > 0 {
        nibble -= 1;
        nibbles[codes[nibble] as usize] = nibble as u8;
    }
    nibbles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nibbles_are_the_inverse_of_codes() {
        for table in [Table::IQ4, Table::FP4] {
            for (nibble, &code) in (0..).zip(table.codes()) {
                let found = table.nibbles()[usize::from(code)];
                assert_eq!(table.codes()[usize::from(found)], code);
                assert!(found <= nibble);
                assert_eq!(table.floats()[usize::from(nibble)], f32::from(code));
            }
        }
    }
}
