//! The first page of a file of packed weights.
//!
//! ```text
//! magic 8 | version 4 | source length 4 | bytes 8 | source id 32 | plan 16 | digest 16 | source … | zeros … | seal 16
//! ```
//!
//! Numbers are little-endian. `bytes` is the length of the weights, which follow the page, and `digest` their checksum. The
//! seal is a checksum of the page before it.

use xxhash_rust::xxh3::xxh3_128;

/// Bytes of the header; the weights begin here.
pub(super) const PAGE: usize = 4096;
const MAGIC: &[u8; 8] = b"PRVPACK\0";
/// Incremented with every change of the layout above.
const VERSION: u32 = 1;
const SOURCE_AT: usize = 88;
const SEAL_AT: usize = PAGE - 16;
/// Longest path of a model in a header.
pub const SOURCE_BYTES: usize = SEAL_AT - SOURCE_AT;
/// Longest weights: sums of it and a page fit `usize`.
const MAX_BYTES: u64 = 1 << 46;

/// What a file of packed weights says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Length of the weights.
    pub bytes: usize,
    /// Identifies the contents of the source files.
    pub source_id: [u8; 32],
    /// Identifies the matrices and how they are packed.
    pub plan: [u8; 16],
    /// Checksum of the weights.
    pub digest: [u8; 16],
    /// Path of the model; informative.
    pub source: String,
}

impl Header {
    /// # Panics
    /// `source` is longer than [`SOURCE_BYTES`].
    pub(super) fn encode(&self) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        page[..8].copy_from_slice(MAGIC);
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        page[12..16].copy_from_slice(&(self.source.len() as u32).to_le_bytes());
        page[16..24].copy_from_slice(&(self.bytes as u64).to_le_bytes());
        page[24..56].copy_from_slice(&self.source_id);
        page[56..72].copy_from_slice(&self.plan);
        page[72..SOURCE_AT].copy_from_slice(&self.digest);
        assert!(self.source.len() <= SOURCE_BYTES);
        page[SOURCE_AT..][..self.source.len()].copy_from_slice(self.source.as_bytes());
        let seal = seal(&page);
        page[SEAL_AT..].copy_from_slice(&seal);
        page
    }

    /// The header in a file's first bytes.
    ///
    /// # Errors
    /// It is none, or damaged.
    pub(super) fn parse(page: &[u8]) -> Result<Self, &'static str> {
        let page: &[u8; PAGE] = page.try_into().map_err(|_| "it is truncated")?;
        if &page[..8] != MAGIC {
            return Err("it holds no packed weights");
        }
        if page[SEAL_AT..] != seal(page) {
            return Err("its header is damaged");
        }
        let word = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("4 bytes"));
        if word(8) != VERSION {
            return Err("another version of Pravāha wrote it");
        }
        // The seal is no proof: anybody can compute it.
        let bytes = u64::from_le_bytes(page[16..24].try_into().expect("8 bytes"));
        let source = page[SOURCE_AT..SEAL_AT].get(..word(12) as usize);
        let source = source.and_then(|text| std::str::from_utf8(text).ok());
        let (Some(source), true) = (source, (1..=MAX_BYTES).contains(&bytes)) else {
            return Err("its header is damaged");
        };
        Ok(Self {
            bytes: bytes as usize,
            source_id: page[24..56].try_into().expect("32 bytes"),
            plan: page[56..72].try_into().expect("16 bytes"),
            digest: page[72..SOURCE_AT].try_into().expect("16 bytes"),
            source: source.to_owned(),
        })
    }
}

fn seal(page: &[u8; PAGE]) -> [u8; 16] {
    xxh3_128(&page[..SEAL_AT]).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(source: String, bytes: usize) -> Header {
        Header {
            bytes,
            source_id: [1; 32],
            plan: [2; 16],
            digest: [3; 16],
            source,
        }
    }

    /// The page with one field changed and sealed again.
    fn resealed(change: impl FnOnce(&mut [u8; PAGE])) -> [u8; PAGE] {
        let mut page = header("/models/a.gguf".into(), 640).encode();
        change(&mut page);
        let seal = seal(&page);
        page[SEAL_AT..].copy_from_slice(&seal);
        page
    }

    #[test]
    fn another_version_is_named() {
        let reason = Header::parse(&resealed(|page| page[8] += 1)).unwrap_err();
        assert!(reason.contains("another version"), "{reason}");
    }

    #[test]
    fn lengths_and_text_are_checked_behind_a_right_seal() {
        let changes: [fn(&mut [u8; PAGE]); 4] = [
            |page| page[12..16].fill(0xff),
            |page| page[16..24].fill(0xff),
            |page| page[16..24].fill(0),
            |page| page[SOURCE_AT] = 0xff,
        ];
        for change in changes {
            assert_eq!(
                Header::parse(&resealed(change)),
                Err("its header is damaged")
            );
        }
    }

    proptest! {
        #[test]
        fn parsing_inverts_encoding(source in "\\PC{0,900}", bytes in 1usize..1 << 46) {
            let header = header(source, bytes);
            prop_assert_eq!(Header::parse(&header.encode()), Ok(header));
        }

        #[test]
        fn one_changed_byte_is_refused(at in 0..PAGE, change in 1..=255u8) {
            let mut page = header("/models/a.gguf".into(), 640).encode();
            page[at] ^= change;
            prop_assert!(Header::parse(&page).is_err());
        }

        /// Any bytes, also with a right seal, give a header or a reason.
        #[test]
        fn any_bytes_are_parsed(
            fields in proptest::collection::vec(any::<u8>(), SOURCE_AT - 12),
            version in 0u32..3,
            len in 0..=PAGE,
        ) {
            let page = resealed(|page| {
                page[8..12].copy_from_slice(&version.to_le_bytes());
                page[12..SOURCE_AT].copy_from_slice(&fields);
            });
            prop_assert!(len == PAGE || Header::parse(&page[..len]).is_err());
            if let Ok(header) = Header::parse(&page) {
                prop_assert!(version == VERSION && header.bytes as u64 <= MAX_BYTES);
                prop_assert!(header.source.len() <= SOURCE_BYTES);
            }
        }
    }
}
