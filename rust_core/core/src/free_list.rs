//! The list of available blocks, in the order in which they are allocated.
//!
//! An intrusive circular doubly linked list over block ids: `links[b]` are block `b`'s neighbours. The entry after
//! the last block is the sentinel, both head and tail, so no operation branches on an end. Every operation is O(1), and
//! none allocates memory.

use crate::BlockId;

#[derive(Debug, Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

#[derive(Debug)]
pub(crate) struct FreeList {
    /// `[blocks + 1]`; a block outside the list links to itself.
    links: Vec<Link>,
    len: usize,
}

impl FreeList {
    /// A list of all blocks, lowest id first.
    pub(crate) fn full(num_blocks: u32) -> Self {
        let size = num_blocks + 1;
        let links = (0..size)
            .map(|at| Link {
                previous: (at + size - 1) % size,
                next: (at + 1) % size,
            })
            .collect();
        Self {
            links,
            len: num_blocks as usize,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn sentinel(&self) -> u32 {
        (self.links.len() - 1) as u32
    }

    /// Whether `block` is in the list.
    pub(crate) fn contains(&self, block: BlockId) -> bool {
        self.links[block as usize].next != block
    }

    /// The block that is allocated next.
    pub(crate) fn front(&self) -> Option<BlockId> {
        let front = self.links[self.sentinel() as usize].next;
        (front != self.sentinel()).then_some(front)
    }

    /// Adds `block` to the front, to be allocated first.
    pub(crate) fn push_front(&mut self, block: BlockId) {
        let sentinel = self.sentinel();
        self.insert_between(block, sentinel, self.links[sentinel as usize].next);
    }

    /// Adds `block` to the back, to be allocated last.
    pub(crate) fn push_back(&mut self, block: BlockId) {
        let sentinel = self.sentinel();
        self.insert_between(block, self.links[sentinel as usize].previous, sentinel);
    }

    fn insert_between(&mut self, block: BlockId, previous: u32, next: u32) {
        debug_assert!(!self.contains(block));
        self.links[block as usize] = Link { previous, next };
        self.links[previous as usize].next = block;
        self.links[next as usize].previous = block;
        self.len += 1;
    }

    /// Removes `block` from any position.
    pub(crate) fn remove(&mut self, block: BlockId) {
        debug_assert!(self.contains(block));
        let Link { previous, next } = self.links[block as usize];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        self.links[block as usize] = Link {
            previous: block,
            next: block,
        };
        self.len -= 1;
    }

    /// The blocks in order. Stops after `len` steps even when the links are damaged.
    pub(crate) fn iter(&self) -> impl Iterator<Item = BlockId> + '_ {
        let mut at = self.sentinel();
        (0..self.len).map(move |_| {
            at = self.links[at as usize].next;
            at
        })
    }

    /// Checks that links agree in both directions and that the length is right.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut at = self.sentinel();
        for _ in 0..=self.len {
            let next = self.links[at as usize].next;
            if self.links[next as usize].previous != at {
                return Err(format!("free list links disagree between {at} and {next}"));
            }
            at = next;
        }
        if at != self.sentinel() {
            return Err(format!(
                "free list does not close after {} blocks",
                self.len
            ));
        }
        Ok(())
    }
}
