//! Hashes of whole prefixes.

use crate::TokenId;

/// BLAKE3 of the parent's key and the block's tokens. The parent of a first block is the *identity*: 32 bytes
/// that depend on everything other than tokens that changes KV bytes.
pub type ChainKey = [u8; 32];

/// The key of a block of `tokens` after the prefix of `parent`.
pub(super) fn chain_key(parent: &ChainKey, tokens: &[TokenId]) -> ChainKey {
    let mut hasher = blake3::Hasher::new();
    hasher.update(parent);
    for token in tokens {
        hasher.update(&token.to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// XXH3 of `bytes`: detects corruption but not tampering, at memory speed.
pub(super) fn checksum(bytes: &[u8]) -> [u8; 16] {
    xxhash_rust::xxh3::xxh3_128(bytes).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_every_token_before_it_and_on_the_identity() {
        let key = |identity: u8, first: i32, second: i32| {
            chain_key(&chain_key(&[identity; 32], &[first, 2]), &[second])
        };
        assert_eq!(key(0, 1, 3), key(0, 1, 3));
        for other in [key(1, 1, 3), key(0, 9, 3), key(0, 1, 9)] {
            assert_ne!(key(0, 1, 3), other);
        }
    }
}
