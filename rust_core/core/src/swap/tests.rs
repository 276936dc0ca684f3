//! The store by example, with damaged files, and under random operations against a naive model.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::layout::PAGE;
use super::*;
use crate::TokenId;

const GEOMETRY: SwapGeometry = SwapGeometry {
    block_size: 2,
    block_bytes: 300,
};
const IDENTITY: ChainKey = [1; 32];
const SALT: &[u8] = b"";

fn capacity(entries: usize) -> u64 {
    (PAGE + entries * GEOMETRY.stride()) as u64
}

fn in_memory(entries: usize) -> SwapStore {
    SwapStore::open(None, IDENTITY, GEOMETRY, capacity(entries)).unwrap()
}

fn in_file(path: &Path, entries: usize) -> SwapStore {
    SwapStore::open(Some(path), IDENTITY, GEOMETRY, capacity(entries)).unwrap()
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("swap");
    (folder, path)
}

fn bytes_of(tokens: &[TokenId]) -> Vec<u8> {
    bytes_under(SALT, tokens)
}

/// Bytes that only this prefix has, and only under this salt.
fn bytes_under(salt: &[u8], tokens: &[TokenId]) -> Vec<u8> {
    let salt = salt.iter().map(|&byte| u32::from(byte) + 1000);
    let tokens = tokens.iter().map(|&token| token as u32);
    let mut state = salt.chain(tokens).fold(17u32, |state, value| {
        state.wrapping_mul(31).wrapping_add(value)
    });
    (0..GEOMETRY.block_bytes)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

fn save(store: &SwapStore, tokens: &[TokenId]) -> Vec<EntryId> {
    save_under(store, SALT, tokens)
}

/// Saves every block of `tokens` that is not there; returns the entries as far as there was room.
fn save_under(store: &SwapStore, salt: &[u8], tokens: &[TokenId]) -> Vec<EntryId> {
    let mut path = Vec::new();
    for (index, block) in tokens.chunks_exact(2).enumerate() {
        let parent = path.last().copied().unwrap_or(ROOT);
        match store.reserve(salt, parent, block) {
            Reservation::Known(id) => path.push(id),
            Reservation::New(id) => {
                let bytes = bytes_under(salt, &tokens[..2 * index + 2]);
                assert!(store.fill(id, &bytes).unwrap());
                path.push(id);
            }
            Reservation::Refused => break,
        }
        store.check_integrity().unwrap();
    }
    path
}

fn found(store: &SwapStore, tokens: &[TokenId]) -> usize {
    found_under(store, SALT, tokens)
}

/// How many blocks of `tokens` are there; each one's bytes are checked.
fn found_under(store: &SwapStore, salt: &[u8], tokens: &[TokenId]) -> usize {
    let entries = store.match_prefix(salt, tokens);
    let mut bytes = vec![0; GEOMETRY.block_bytes];
    for (index, &entry) in entries.iter().enumerate() {
        assert!(store.read(entry, &mut bytes));
        assert_eq!(bytes, bytes_under(salt, &tokens[..2 * index + 2]));
    }
    store.check_integrity().unwrap();
    entries.len()
}

#[test]
fn a_saved_block_is_found_by_its_tokens_and_no_others() {
    let store = in_memory(8);
    assert_eq!(found(&store, &[1, 2, 3, 4]), 0);
    save(&store, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(found(&store, &[1, 2, 3, 4, 5, 6, 7]), 3);
    assert_eq!(found(&store, &[1, 2, 3, 4, 9, 9]), 2);
    assert_eq!(
        found(&store, &[3, 4, 5, 6]),
        0,
        "a block is its whole prefix"
    );
    assert_eq!(
        save(&store, &[1, 2, 3, 4]),
        store.match_prefix(SALT, &[1, 2, 3, 4])
    );
    assert_eq!(store.stats().entries, 3, "saving again adds nothing");
}

#[test]
fn a_reserved_entry_is_not_found_before_it_is_filled() {
    let store = in_memory(8);
    let Reservation::New(entry) = store.reserve(SALT, ROOT, &[1, 2]) else {
        panic!("an empty store has room");
    };
    assert_eq!(found(&store, &[1, 2]), 0);
    assert_eq!(
        store.reserve(SALT, ROOT, &[1, 2]),
        Reservation::Known(entry)
    );
    store.abandon(entry);
    assert!(!store.is_alive(entry));
    assert!(!store.fill(entry, &bytes_of(&[1, 2])).unwrap());
    store.check_integrity().unwrap();
}

#[test]
fn entries_below_an_abandoned_entry_are_removed() {
    let store = in_memory(8);
    let reserve = |parent, tokens| match store.reserve(SALT, parent, tokens) {
        Reservation::New(entry) => entry,
        other => panic!("{other:?}"),
    };
    let first = reserve(ROOT, &[1, 2]);
    let second = reserve(first, &[3, 4]);
    let third = reserve(second, &[5, 6]);
    store.abandon(first);
    assert!(!store.is_alive(first));
    assert_eq!(
        store.reserve(SALT, ROOT, &[1, 2]),
        Reservation::Refused,
        "not yet gone"
    );
    assert!(!store.fill(second, &bytes_of(&[1, 2, 3, 4])).unwrap());
    assert!(!store.fill(third, &bytes_of(&[1, 2, 3, 4, 5, 6])).unwrap());
    store.check_integrity().unwrap();
    assert_eq!(store.stats().entries, 0);
    assert_eq!(save(&store, &[1, 2, 3, 4]).len(), 2);
}

#[test]
fn the_least_recently_used_entry_is_evicted_first_and_tails_before_heads() {
    let store = in_memory(4);
    save(&store, &[1, 1, 2, 2]);
    save(&store, &[3, 3, 4, 4]);
    assert_eq!(found(&store, &[1, 1, 2, 2]), 2); // now the more recently used
    save(&store, &[5, 5]);
    assert_eq!(found(&store, &[3, 3, 4, 4]), 1);
    save(&store, &[6, 6, 7, 7]);
    assert_eq!(
        found(&store, &[3, 3, 4, 4]),
        1,
        "looked at since, so it stays"
    );
    assert_eq!(found(&store, &[1, 1, 2, 2]), 0);
    assert_eq!(store.stats().entries, 4);
    assert_eq!(store.stats().evicted_total, 3);
}

#[test]
fn a_chain_longer_than_the_store_keeps_its_beginning() {
    let store = in_memory(3);
    let long: Vec<TokenId> = (0..12).collect();
    assert_eq!(save(&store, &long).len(), 3);
    assert_eq!(found(&store, &long), 3);
}

#[test]
fn an_entry_being_written_is_not_evicted() {
    let store = in_memory(1);
    let Reservation::New(entry) = store.reserve(SALT, ROOT, &[1, 2]) else {
        panic!("an empty store has room");
    };
    assert_eq!(store.reserve(SALT, ROOT, &[3, 4]), Reservation::Refused);
    assert!(store.fill(entry, &bytes_of(&[1, 2])).unwrap());
    assert!(matches!(
        store.reserve(SALT, ROOT, &[3, 4]),
        Reservation::New(_)
    ));
    assert!(!store.is_alive(entry));
}

#[test]
fn a_file_opened_again_has_what_it_had_and_evicts_in_the_same_order() {
    let (_folder, path) = folder();
    let store = in_file(&path, 4);
    assert!(store.is_persistent());
    save(&store, &[1, 1, 2, 2]);
    save(&store, &[3, 3, 4, 4]);
    found(&store, &[1, 1, 2, 2]);
    drop(store);
    let store = in_file(&path, 4);
    assert_eq!(store.notice(), None);
    save(&store, &[5, 5]);
    assert_eq!(found(&store, &[3, 3, 4, 4]), 1);
    assert_eq!(found(&store, &[1, 1, 2, 2]), 2);
}

#[test]
fn a_smaller_capacity_shrinks_the_file_and_keeps_whole_chains() {
    let (_folder, path) = folder();
    let tokens: Vec<TokenId> = (0..16).collect();
    save(&in_file(&path, 8), &tokens);
    let store = in_file(&path, 3);
    assert_eq!(store.stats().entries, 3);
    assert_eq!(found(&store, &tokens), 3);
    assert!(std::fs::metadata(&path).unwrap().len() <= capacity(3));
}

#[test]
fn the_file_is_no_larger_than_its_bound() {
    let (_folder, path) = folder();
    let store = in_file(&path, 5);
    for start in 0..20 {
        save(&store, &[start, start, start, 7]);
    }
    assert_eq!(store.stats().entries, 5);
    assert!(std::fs::metadata(&path).unwrap().len() <= capacity(5));
}

#[test]
fn another_process_keeps_the_file_to_itself() {
    let (_folder, path) = folder();
    let first = in_file(&path, 4);
    let second = SwapStore::open(Some(&path), IDENTITY, GEOMETRY, capacity(4));
    assert!(matches!(second, Err(SwapError::InUse(_))));
    drop(first);
    in_file(&path, 4);
}

#[test]
fn another_identity_or_geometry_shares_nothing() {
    let (_folder, path) = folder();
    save(&in_file(&path, 4), &[1, 2]);
    let store = SwapStore::open(Some(&path), [2; 32], GEOMETRY, capacity(4)).unwrap();
    assert!(store.notice().unwrap().contains("another model"));
    assert_eq!(store.stats().entries, 0);
    drop(store);
    save(&in_file(&path, 4), &[1, 2]);
    let wider = SwapGeometry {
        block_bytes: 301,
        ..GEOMETRY
    };
    let store = SwapStore::open(Some(&path), IDENTITY, wider, 1 << 20).unwrap();
    assert_eq!(store.match_prefix(SALT, &[1, 2]), []);
}

#[test]
fn a_salt_separates_equal_tokens_across_a_restart() {
    let (_folder, path) = folder();
    {
        let store = in_file(&path, 8);
        save_under(&store, b"one", &[1, 2, 3, 4]);
        assert_eq!(found_under(&store, b"two", &[1, 2, 3, 4]), 0);
        save_under(&store, b"two", &[1, 2]);
        assert_eq!(store.stats().entries, 3);
    }
    let store = in_file(&path, 8);
    assert_eq!(found_under(&store, b"one", &[1, 2, 3, 4]), 2);
    assert_eq!(found_under(&store, b"two", &[1, 2, 3, 4]), 1);
    assert_eq!(found(&store, &[1, 2, 3, 4]), 0);
}

#[test]
fn a_foreign_file_is_replaced() {
    for contents in [vec![b'x'; 10], vec![b'x'; 3 * PAGE], vec![0; 2 * PAGE]] {
        let (_folder, path) = folder();
        std::fs::write(&path, &contents).unwrap();
        let store = in_file(&path, 4);
        assert!(store.notice().unwrap().contains("a new one is created"));
        save(&store, &[1, 2]);
        drop(store);
        assert_eq!(found(&in_file(&path, 4), &[1, 2]), 1);
    }
    let (folder, _) = folder();
    let directory = SwapStore::open(Some(folder.path()), IDENTITY, GEOMETRY, capacity(4));
    assert!(matches!(directory, Err(SwapError::File { .. })));
}

#[test]
fn a_capacity_below_one_entry_is_refused() {
    let none = SwapStore::open(None, IDENTITY, GEOMETRY, 100);
    assert!(matches!(none, Err(SwapError::TooSmall { .. })));
}

#[test]
fn a_damaged_block_is_forgotten_with_all_that_follows_it() {
    let (_folder, path) = folder();
    save(&in_file(&path, 4), &[1, 2, 3, 4, 5, 6]);
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    let second = (PAGE + GEOMETRY.stride() + 40) as u64;
    file.seek(SeekFrom::Start(second)).unwrap();
    file.write_all(&[0xA5; 8]).unwrap();
    let store = in_file(&path, 4);
    let entries = store.match_prefix(SALT, &[1, 2, 3, 4, 5, 6]);
    let mut bytes = vec![0; GEOMETRY.block_bytes];
    assert!(store.read(entries[0], &mut bytes));
    assert!(!store.read(entries[1], &mut bytes));
    assert!(!store.is_alive(entries[2]));
    assert_eq!(found(&store, &[1, 2, 3, 4, 5, 6]), 1);
    assert_eq!(store.stats().damaged_total, 1);
}

/// Every block has the same key as every other.
fn one_key(_: &ChainKey, _: &[TokenId]) -> ChainKey {
    [7; 32]
}

#[test]
fn r06_colliding_keys_never_return_another_block() {
    let store = SwapStore::with_keys(None, IDENTITY, GEOMETRY, capacity(4), one_key).unwrap();
    save(&store, &[1, 2]);
    assert_eq!(found(&store, &[1, 2]), 1);
    assert_eq!(found(&store, &[3, 4]), 0);
    assert_eq!(store.reserve(SALT, ROOT, &[3, 4]), Reservation::Refused);
    assert_eq!(
        found(&store, &[1, 2, 1, 2]),
        1,
        "equal tokens after another prefix"
    );
}

/// A sequence over few tokens, so that prefixes are shared.
fn prefix() -> impl Strategy<Value = Vec<TokenId>> {
    prop::collection::vec(0..3i32, 2..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn found_entries_have_the_saved_bytes(
        file in any::<bool>(),
        slots in 1..10usize,
        steps in prop::collection::vec((0..4u8, any::<bool>(), prefix()), 1..40),
    ) {
        let (_folder, path) = folder();
        let open = || if file { in_file(&path, slots) } else { in_memory(slots) };
        let mut store = open();
        let mut ever: HashSet<(bool, Vec<TokenId>)> = HashSet::new();
        for (step, salted, tokens) in steps {
            let salt: &[u8] = if salted { b"salt" } else { SALT };
            match step {
                0 | 1 => {
                    let saved = save_under(&store, salt, &tokens).len();
                    for count in 1..=saved {
                        ever.insert((salted, tokens[..2 * count].to_vec()));
                    }
                    prop_assert!(found_under(&store, salt, &tokens) >= saved);
                }
                2 => {
                    let count = found_under(&store, salt, &tokens);
                    for count in 1..=count {
                        prop_assert!(ever.contains(&(salted, tokens[..2 * count].to_vec())));
                    }
                }
                _ if file => {
                    let before = store.stats().entries;
                    drop(store);
                    store = open();
                    prop_assert_eq!(store.notice(), None);
                    prop_assert_eq!(store.stats().entries, before);
                }
                _ => {}
            }
            prop_assert!(store.stats().entries <= slots);
        }
    }

    #[test]
    fn a_file_with_any_damage_opens_and_never_serves_wrong_bytes(
        damage in prop::collection::vec((0..4 * GEOMETRY.stride() + PAGE, any::<u8>()), 0..6),
        cut in prop::option::of(0..4 * GEOMETRY.stride() + PAGE),
    ) {
        let (_folder, path) = folder();
        let tokens = [1, 2, 3, 4, 5, 6];
        {
            let store = in_file(&path, 4);
            save(&store, &tokens);
            save(&store, &[1, 2, 9, 9]);
        }
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, byte) in damage {
            let end = bytes.len() - 1;
            bytes[at.min(end)] = byte;
        }
        bytes.truncate(cut.unwrap_or(bytes.len()));
        std::fs::write(&path, &bytes).unwrap();
        let store = in_file(&path, 4);
        store.check_integrity().unwrap();
        let entries = store.match_prefix(SALT, &tokens);
        let mut block = vec![0; GEOMETRY.block_bytes];
        for (index, &entry) in entries.iter().enumerate() {
            if store.read(entry, &mut block) {
                prop_assert_eq!(&block, &bytes_of(&tokens[..2 * index + 2]));
            }
        }
        save(&store, &tokens);
        prop_assert_eq!(found(&store, &tokens), 3);
    }
}
