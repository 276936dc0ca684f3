//! Hashes of whole prefixes.

use crate::TokenId;

/// BLAKE3 of the parent's key and the block's tokens; of a first block, of the [`root_key`].
pub type ChainKey = [u8; 32];

/// The key above the first blocks under `salt`, the salt of a root of the prefix trie. `identity`: 32 bytes that depend
/// on everything other than tokens that changes KV bytes.
pub(super) fn root_key(identity: &ChainKey, salt: &[u8]) -> ChainKey {
    *blake3::keyed_hash(identity, salt).as_bytes()
}

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
    fn a_key_depends_on_every_token_before_it_on_the_salt_and_on_the_identity() {
        let key = |identity: u8, salt: &[u8], first: i32, second: i32| {
            let root = root_key(&[identity; 32], salt);
            chain_key(&chain_key(&root, &[first, 2]), &[second])
        };
        let one = key(0, b"salt", 1, 3);
        assert_eq!(one, key(0, b"salt", 1, 3));
        for other in [
            key(1, b"salt", 1, 3),
            key(0, b"", 1, 3),
            key(0, b"salt", 9, 3),
            key(0, b"salt", 1, 9),
        ] {
            assert_ne!(one, other);
        }
    }
}
