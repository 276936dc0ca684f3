//! The entries of the swap tier, their slots, and their eviction order.
//!
//! Invariants:
//! 1. An entry's parent has an entry: only entries without children are removed.
//! 2. An entry is either in use (being written or read) or in `order`, which lists empty slots first and then entries,
//!    least recently used first.
//! 3. A use of an entry also uses its ancestors, after it, so that tails are evicted before heads.
//!
//! Every operation on an entry is O(1); a use is O(depth).

use std::collections::HashMap;

use super::chain_key::ChainKey;
use super::layout::Record;
use super::{EntryId, ROOT};
use crate::TokenId;
use crate::free_list::FreeList;

/// An entry in a slot.
#[derive(Debug)]
pub(super) struct Entry {
    pub id: EntryId,
    pub parent: EntryId,
    pub key: ChainKey,
    pub tokens: Box<[TokenId]>,
    pub children: u32,
    pub state: EntryState,
    /// Clock at the last use.
    pub used: u64,
    /// Reads in progress.
    pub reads: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    /// Its bytes are not written yet.
    Reserved,
    /// Its bytes are complete.
    Ready,
    /// It will not be filled; it is removed as soon as it has no children.
    Failed,
}

#[derive(Debug)]
pub(super) struct Entries {
    /// Slot → entry.
    slots: Vec<Option<Entry>>,
    by_key: HashMap<ChainKey, usize>,
    by_id: HashMap<EntryId, usize>,
    order: FreeList,
    next_id: EntryId,
    /// Number of uses so far, as a clock.
    clock: u64,
}

impl Entries {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| None).collect(),
            by_key: HashMap::new(),
            by_id: HashMap::new(),
            order: FreeList::full(slots as u32),
            next_id: ROOT + 1,
            clock: 0,
        }
    }

    /// Restores the entries of a file from slots, records and times of last use. Entries whose parent is
    /// missing are dropped; their slots are returned.
    pub(super) fn restore(&mut self, mut records: Vec<(usize, Record, u64)>) -> Vec<usize> {
        let mut orphans = Vec::new();
        records.sort_unstable_by_key(|(_, record, _)| record.id); // parents have smaller ids than their children
        for (slot, record, _) in &records {
            let known = record.parent == ROOT || self.by_id.contains_key(&record.parent);
            let fresh = record.id != ROOT
                && !self.by_id.contains_key(&record.id)
                && !self.by_key.contains_key(&record.key);
            if known && fresh {
                let tokens = record.tokens.clone().into();
                self.insert(*slot, record.id, record.parent, record.key, tokens);
                self.entry_mut(*slot).state = EntryState::Ready;
                self.next_id = self.next_id.max(record.id + 1);
            } else {
                orphans.push(*slot);
            }
        }
        records.sort_by_key(|(_, record, used)| (*used, std::cmp::Reverse(record.id)));
        for (slot, _, used) in records {
            if let Some(entry) = &mut self.slots[slot] {
                entry.used = used;
                self.clock = self.clock.max(used);
                self.order.push_back(slot as u32);
            }
        }
        orphans
    }

    /// Every entry and its slot, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)))
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn slot_of(&self, id: EntryId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// The slot of the entry with `key`, in any state.
    pub(super) fn slot_under(&self, key: &ChainKey) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    pub(super) fn entry(&self, slot: usize) -> &Entry {
        self.slots[slot].as_ref().expect("the slot holds an entry")
    }

    fn entry_mut(&mut self, slot: usize) -> &mut Entry {
        self.slots[slot].as_mut().expect("the slot holds an entry")
    }

    /// The slot for a new entry below `parent`: an empty one, or that of the least recently used entry that
    /// has no children and is not `parent`.
    pub(super) fn next_slot(&self, parent: EntryId) -> Option<usize> {
        self.order
            .iter()
            .map(|slot| slot as usize)
            .find(|&slot| match &self.slots[slot] {
                None => true,
                Some(entry) => entry.children == 0 && entry.id != parent,
            })
    }

    pub(super) fn is_empty_slot(&self, slot: usize) -> bool {
        self.slots[slot].is_none()
    }

    /// Removes the empty slots, for which the disk has no room. Returns how many slots are left.
    pub(super) fn drop_empty_slots(&mut self) -> usize {
        for slot in 0..self.slots.len() {
            if self.slots[slot].is_none() && self.order.contains(slot as u32) {
                self.order.remove(slot as u32);
            }
        }
        self.len()
    }

    /// Puts a new entry into an empty slot. It is reserved and not in `order`.
    pub(super) fn add(
        &mut self,
        slot: usize,
        parent: EntryId,
        key: ChainKey,
        tokens: Box<[TokenId]>,
    ) -> EntryId {
        let id = self.next_id;
        self.next_id += 1;
        self.insert(slot, id, parent, key, tokens);
        id
    }

    fn insert(
        &mut self,
        slot: usize,
        id: EntryId,
        parent: EntryId,
        key: ChainKey,
        tokens: Box<[TokenId]>,
    ) {
        self.order.remove(slot as u32);
        if parent != ROOT {
            let above = self.by_id[&parent];
            self.entry_mut(above).children += 1;
        }
        self.by_key.insert(key, slot);
        self.by_id.insert(id, slot);
        self.slots[slot] = Some(Entry {
            id,
            parent,
            key,
            tokens,
            children: 0,
            state: EntryState::Reserved,
            used: 0,
            reads: 0,
        });
    }

    /// Marks an entry's bytes as complete.
    pub(super) fn set_ready(&mut self, slot: usize) {
        self.entry_mut(slot).state = EntryState::Ready;
        self.order.push_back(slot as u32);
    }

    /// Marks an entry that will not be filled as failed. It is removed now, or with the last entry below it, together
    /// with failed entries above it.
    pub(super) fn fail(&mut self, slot: usize) {
        let mut at = Some(slot);
        while let Some(slot) = at {
            let entry = self.entry_mut(slot);
            entry.state = EntryState::Failed;
            if entry.children > 0 {
                return;
            }
            let parent = entry.parent;
            self.remove(slot);
            at = self
                .slot_of(parent)
                .filter(|&above| self.entry(above).state == EntryState::Failed);
        }
    }

    pub(super) fn begin_read(&mut self, slot: usize) {
        if self.order.contains(slot as u32) {
            self.order.remove(slot as u32);
        }
        self.entry_mut(slot).reads += 1;
    }

    pub(super) fn end_read(&mut self, slot: usize) {
        let entry = self.entry_mut(slot);
        entry.reads -= 1;
        if entry.reads == 0 {
            self.order.push_back(slot as u32);
        }
    }

    /// Makes an entry and its ancestors the most recently used.
    pub(super) fn touch(&mut self, id: EntryId) {
        let mut at = id;
        while let Some(slot) = self.slot_of(at) {
            self.clock += 1;
            let now = self.clock;
            self.entry_mut(slot).used = now;
            if self.order.contains(slot as u32) {
                self.order.remove(slot as u32);
                self.order.push_back(slot as u32);
            }
            at = self.entry(slot).parent;
        }
    }

    /// Removes an entry without children; its slot becomes an empty one.
    pub(super) fn remove(&mut self, slot: usize) {
        let entry = self.slots[slot].take().expect("the slot holds an entry");
        assert!(entry.children == 0 && entry.reads == 0);
        self.by_key.remove(&entry.key);
        self.by_id.remove(&entry.id);
        if let Some(above) = self.slot_of(entry.parent) {
            self.entry_mut(above).children -= 1;
        }
        if self.order.contains(slot as u32) {
            self.order.remove(slot as u32);
        }
        self.order.push_front(slot as u32);
    }

    /// Slots of an entry and of everything below it, deepest first. O(entries × depth); for damage.
    pub(super) fn subtree(&self, id: EntryId) -> Vec<usize> {
        let depth_below = |slot: usize| {
            let (mut at, mut depth) = (self.entry(slot).id, 0);
            while at != id {
                at = self.entry(self.slot_of(at)?).parent;
                depth += 1;
            }
            Some(depth)
        };
        let mut found: Vec<(usize, usize)> = self
            .by_id
            .values()
            .filter_map(|&slot| Some((depth_below(slot)?, slot)))
            .collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Checks every invariant; O(slots).
    pub(super) fn check(&self) -> Result<(), String> {
        self.order.check()?;
        let mut children: HashMap<EntryId, u32> = HashMap::new();
        for (slot, entry) in self.slots.iter().enumerate() {
            let Some(entry) = entry else { continue };
            if self.slot_of(entry.id) != Some(slot) || self.slot_under(&entry.key) != Some(slot) {
                return Err(format!(
                    "swap entry {} is not found in slot {slot}",
                    entry.id
                ));
            }
            if entry.parent != ROOT {
                if self.slot_of(entry.parent).is_none() {
                    return Err(format!("swap entry {} has no parent entry", entry.id));
                }
                *children.entry(entry.parent).or_default() += 1;
            }
            let in_use = entry.state != EntryState::Ready || entry.reads > 0;
            if in_use == self.order.contains(slot as u32) {
                return Err(format!(
                    "swap entry {} is in use but in the eviction order, or the reverse",
                    entry.id
                ));
            }
        }
        let used = self.slots.iter().flatten().count();
        if (self.by_id.len(), self.by_key.len()) != (used, used) {
            return Err(format!(
                "swap has {used} entries but indexes {}",
                self.by_id.len()
            ));
        }
        for entry in self.slots.iter().flatten() {
            if entry.children != children.get(&entry.id).copied().unwrap_or(0) {
                return Err(format!(
                    "swap entry {} has a wrong count of children",
                    entry.id
                ));
            }
        }
        Ok(())
    }
}
