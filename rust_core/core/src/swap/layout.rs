//! The layout of a swap file: a header, then slots of equal size, each with one block and its record.
//!
//! ```text
//! header (4096):  magic 8 | version 4 | block_size 4 | block_bytes 8 | identity 32 | seal 16
//! slot (stride):  block | record: seal 16 | id 8 | parent 8 | key 32 | block's checksum 16 | tokens 4·n | used 8
//! ```
//!
//! Numbers are little-endian. A seal is a checksum of the rest of the record (in the header: of the bytes before
//! it) that detects torn writes. `used`, the clock at the last use, is not covered by the seal: it is
//! rewritten when the store is closed, and a torn one only changes the eviction order.

use super::chain_key::{ChainKey, checksum};
use super::{EntryId, SwapError};
use crate::TokenId;

pub(super) const PAGE: usize = 4096;
const MAGIC: &[u8; 8] = b"PRVSWAP\0";
/// Incremented with every change of the layout above.
const VERSION: u32 = 1;
const HEADER_SEALED: usize = 56;
const RECORD_FIXED: usize = 80;

/// Sizes of the stored blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwapGeometry {
    /// Tokens in a block.
    pub block_size: usize,
    /// Bytes of a block, all layers.
    pub block_bytes: usize,
}

impl SwapGeometry {
    /// Bytes from one slot to the next: whole pages.
    pub fn stride(&self) -> usize {
        (self.used_at() + 8).next_multiple_of(PAGE)
    }

    /// Offset of the record in a slot.
    pub(super) fn record_at(&self) -> usize {
        self.block_bytes.next_multiple_of(64)
    }

    /// Bytes of a record's seal and of what it covers.
    pub(super) fn sealed_bytes(&self) -> usize {
        RECORD_FIXED + 4 * self.block_size
    }

    /// Offset of `used` in a slot.
    pub(super) fn used_at(&self) -> usize {
        self.record_at() + self.sealed_bytes()
    }

    pub(super) fn check(&self) -> Result<(), SwapError> {
        let tokens = 1..=crate::BlockPool::<std::hash::RandomState>::MAX_BLOCK_SIZE;
        if tokens.contains(&self.block_size) && (1..=1 << 32).contains(&self.block_bytes) {
            return Ok(());
        }
        Err(SwapError::Geometry {
            block_size: self.block_size,
            block_bytes: self.block_bytes,
        })
    }
}

/// The first page of a file.
pub(super) fn header(geometry: &SwapGeometry, identity: &ChainKey) -> [u8; PAGE] {
    let mut page = [0; PAGE];
    page[..8].copy_from_slice(MAGIC);
    page[8..12].copy_from_slice(&VERSION.to_le_bytes());
    page[12..16].copy_from_slice(&(geometry.block_size as u32).to_le_bytes());
    page[16..24].copy_from_slice(&(geometry.block_bytes as u64).to_le_bytes());
    page[24..HEADER_SEALED].copy_from_slice(identity);
    let seal = checksum(&page[..HEADER_SEALED]);
    page[HEADER_SEALED..HEADER_SEALED + 16].copy_from_slice(&seal);
    page
}

/// Why a file that begins with `page` does not match the header `wanted`, or None if it does.
pub(super) fn header_mismatch(page: &[u8], wanted: &[u8; PAGE]) -> Option<&'static str> {
    if page.len() < PAGE {
        Some("it is truncated")
    } else if &page[..8] != MAGIC {
        Some("it is no swap file")
    } else if page[HEADER_SEALED..HEADER_SEALED + 16] != checksum(&page[..HEADER_SEALED]) {
        Some("its header is damaged")
    } else if page[8..12] != wanted[8..12] {
        Some("another version of Pravāha wrote it")
    } else if page[..PAGE] != wanted[..] {
        Some("it belongs to another model or other settings")
    } else {
        None
    }
}

/// A record whose seal is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// Metadata of a slot's block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub id: EntryId,
    pub parent: EntryId,
    pub key: ChainKey,
    pub checksum: [u8; 16],
    pub tokens: Vec<TokenId>,
}

impl Record {
    /// Writes the record and its seal to `bytes`.
    pub(super) fn encode(&self, bytes: &mut [u8]) {
        debug_assert_eq!(bytes.len(), RECORD_FIXED + 4 * self.tokens.len());
        bytes[16..24].copy_from_slice(&self.id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.parent.to_le_bytes());
        bytes[32..64].copy_from_slice(&self.key);
        bytes[64..80].copy_from_slice(&self.checksum);
        for (place, token) in bytes[RECORD_FIXED..].chunks_exact_mut(4).zip(&self.tokens) {
            place.copy_from_slice(&token.to_le_bytes());
        }
        let seal = checksum(&bytes[16..]);
        bytes[..16].copy_from_slice(&seal);
    }

    /// The record in `bytes`, or None if the slot was never filled or was cleared.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub(super) fn decode(bytes: &[u8]) -> Result<Option<Self>, Damaged> {
        if bytes[..16].iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if bytes[..16] != checksum(&bytes[16..]) {
            return Err(Damaged);
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Ok(Some(Self {
            id: number(16),
            parent: number(24),
            key: bytes[32..64].try_into().expect("32 bytes"),
            checksum: bytes[64..80].try_into().expect("16 bytes"),
            tokens: bytes[RECORD_FIXED..]
                .chunks_exact(4)
                .map(|token| TokenId::from_le_bytes(token.try_into().expect("4 bytes")))
                .collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GEOMETRY: SwapGeometry = SwapGeometry {
        block_size: 3,
        block_bytes: 100,
    };

    fn record() -> Record {
        Record {
            id: 7,
            parent: 5,
            key: [9; 32],
            checksum: [3; 16],
            tokens: vec![1, -2, 3],
        }
    }

    #[test]
    fn decoding_inverts_encoding_and_an_empty_slot_is_none() {
        let mut bytes = vec![0; GEOMETRY.sealed_bytes()];
        assert_eq!(Record::decode(&bytes), Ok(None));
        record().encode(&mut bytes);
        assert_eq!(Record::decode(&bytes), Ok(Some(record())));
        assert!(GEOMETRY.stride().is_multiple_of(PAGE));
    }

    #[test]
    fn every_kind_of_header_mismatch_is_reported() {
        let wanted = header(&GEOMETRY, &[1; 32]);
        assert_eq!(header_mismatch(&wanted, &wanted), None);
        assert_eq!(
            header_mismatch(&wanted[..100], &wanted),
            Some("it is truncated")
        );
        assert_eq!(
            header_mismatch(&[7; PAGE], &wanted),
            Some("it is no swap file")
        );
        let foreign = header(&GEOMETRY, &[2; 32]);
        let sentence = header_mismatch(&foreign, &wanted).unwrap();
        assert!(sentence.contains("another model"), "{sentence}");
        let mut newer = wanted;
        newer[8] += 1;
        assert_eq!(
            header_mismatch(&newer, &wanted),
            Some("its header is damaged")
        );
        let seal = checksum(&newer[..HEADER_SEALED]);
        newer[HEADER_SEALED..HEADER_SEALED + 16].copy_from_slice(&seal);
        let sentence = header_mismatch(&newer, &wanted).unwrap();
        assert!(sentence.contains("another version"), "{sentence}");
    }

    proptest! {
        #[test]
        fn one_changed_byte_is_damage(at in 0..GEOMETRY.sealed_bytes(), change in 1..=255u8) {
            let mut bytes = vec![0; GEOMETRY.sealed_bytes()];
            record().encode(&mut bytes);
            bytes[at] ^= change;
            prop_assert_eq!(Record::decode(&bytes), Err(Damaged));
        }
    }
}
