//! The trie as chains: runs of nodes that have one child each, as a radix tree would store them.
//!
//! A long prompt is one node per block; drawn or sent as chains, it is one entry. Made on request, in O(nodes).

use std::collections::VecDeque;
use std::hash::BuildHasher;

use crate::BlockId;
use crate::prefix_trie::{NodeId, PrefixTrie};

/// Chains in breadth-first order, so that a limit leaves out the deepest ones first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PrefixChains {
    /// `[chains]`, index of the chain that each one continues; -1 for those below a root.
    pub parents: Vec<i32>,
    /// `[chains]`, number of blocks in each.
    pub lengths: Vec<i32>,
    /// The blocks of all chains, in the order of the chains and of their tokens.
    pub blocks: Vec<BlockId>,
    /// Whether the limit left chains out.
    pub truncated: bool,
}

impl PrefixChains {
    /// At most `limit` chains of `trie`.
    pub fn of<S: BuildHasher>(trie: &PrefixTrie<S>, limit: usize) -> Self {
        let mut chains = Self::default();
        let mut queue: VecDeque<(NodeId, i32)> = VecDeque::new();
        for root in trie.roots() {
            queue.extend(trie.children(root).map(|node| (node, -1)));
        }
        while let Some((first, parent)) = queue.pop_front() {
            if chains.parents.len() == limit {
                chains.truncated = true;
                break;
            }
            let last = chains.push(trie, first, parent);
            let own = chains.parents.len() as i32 - 1;
            queue.extend(trie.children(last).map(|node| (node, own)));
        }
        chains
    }

    /// Adds the chain that begins at `first`, and returns its last node.
    fn push<S: BuildHasher>(&mut self, trie: &PrefixTrie<S>, first: NodeId, parent: i32) -> NodeId {
        let (mut last, mut length) = (first, 0);
        loop {
            self.blocks.push(trie.block(last));
            length += 1;
            let mut children = trie.children(last);
            match (children.next(), children.next()) {
                (Some(only), None) => last = only,
                _ => break,
            }
        }
        self.parents.push(parent);
        self.lengths.push(length);
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockPool;

    /// Indexes one sequence of blocks of one token each.
    fn index(pool: &mut BlockPool, tokens: &[i32]) {
        let mut blocks = pool.allocate(tokens.len()).unwrap();
        pool.index_or_adopt(b"salt", tokens, &mut blocks, 0)
            .unwrap();
    }

    #[test]
    fn an_empty_trie_has_no_chains() {
        let pool = BlockPool::new(4, 1).unwrap();
        assert_eq!(PrefixChains::of(pool.trie(), 8), PrefixChains::default());
    }

    #[test]
    fn a_sequence_without_forks_is_one_chain() {
        let mut pool = BlockPool::new(8, 1).unwrap();
        index(&mut pool, &[1, 2, 3]);
        let chains = PrefixChains::of(pool.trie(), 8);
        assert_eq!(
            (chains.parents, chains.lengths, chains.blocks.len()),
            (vec![-1], vec![3], 3)
        );
    }

    #[test]
    fn a_fork_ends_a_chain_and_starts_one_for_each_branch() {
        let mut pool = BlockPool::new(8, 1).unwrap();
        index(&mut pool, &[1, 2, 3]);
        index(&mut pool, &[1, 2, 4, 5]);
        let chains = PrefixChains::of(pool.trie(), 8);
        assert_eq!(chains.parents, [-1, 0, 0]);
        assert_eq!(chains.lengths, [2, 2, 1]);
        assert!(!chains.truncated);
    }

    #[test]
    fn a_limit_leaves_out_the_deepest_chains() {
        let mut pool = BlockPool::new(8, 1).unwrap();
        index(&mut pool, &[1, 2, 3]);
        index(&mut pool, &[1, 4]);
        let chains = PrefixChains::of(pool.trie(), 1);
        assert_eq!((chains.lengths, chains.truncated), (vec![1], true));
    }
}
