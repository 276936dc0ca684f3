//! The prefix cache's index: a trie over whole blocks that maps tokens to the block that holds their KV.
//!
//! A node is (parent, the tokens of one full block) and names the block that holds their KV. A root is
//! identified by an opaque salt for everything else that separates blocks: what changes KV bytes (model, weight format,
//! adapter, KV dtype, RoPE settings) and the caller's cache salt. Two salts never share a node.
//!
//! Invariants:
//! 1. The tokens on a node's path from its root are the tokens whose KV its block holds.
//! 2. A node has a parent in the trie; only leaves are removed.
//! 3. No two children of a node have the same tokens.
//! 4. A block is named by at most one node.
//!
//! Costs: finding, inserting or removing one node is O(block size) and takes one hash; matching a prompt costs that for
//! each of its blocks. A root lives as long as it has children. A keyed 64-bit hash of (parent, tokens) locates
//! candidates; equality is decided on parent and tokens, so a collision costs time, never correctness.
//!
//! Nodes never split, so a match locks no nodes; callers retain the blocks that it returns.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::Arc;

use crate::{BlockId, TokenId};

/// Index of a node; reused after the node is removed.
pub type NodeId = u32;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    hash: u64,
    parent: NodeId,
    /// Itself for roots.
    root: NodeId,
    first_child: NodeId,
    previous_sibling: NodeId,
    next_sibling: NodeId,
    /// The next node with the same hash.
    next_collision: NodeId,
    /// `NONE` for roots and for unused entries.
    block: BlockId,
    /// Blocks from the root to here; 0 for roots.
    depth: u32,
}

/// The trie. `S` builds the keyed hash; tests inject one that collides.
#[derive(Debug)]
pub struct PrefixTrie<S = RandomState> {
    block_size: usize,
    nodes: Vec<Node>,
    /// `[nodes * block_size]`, node → its tokens; roots have none.
    tokens: Vec<TokenId>,
    unused: Vec<NodeId>,
    /// Hash → first node of its collision chain.
    by_hash: HashMap<u64, NodeId, BuildHasherDefault<AsIs>>,
    roots: HashMap<Arc<[u8]>, NodeId>,
    salts: HashMap<NodeId, Arc<[u8]>>,
    /// `[blocks]`, block → the node that names it.
    node_of_block: Vec<NodeId>,
    len: usize,
    hasher: S,
}

impl<S: BuildHasher> PrefixTrie<S> {
    /// An empty trie over blocks `[0, num_blocks)` of `block_size` tokens.
    pub fn new(num_blocks: usize, block_size: usize, hasher: S) -> Self {
        assert!(block_size > 0);
        Self {
            block_size,
            nodes: Vec::new(),
            tokens: Vec::new(),
            unused: Vec::new(),
            by_hash: HashMap::default(),
            roots: HashMap::new(),
            salts: HashMap::new(),
            node_of_block: vec![NONE; num_blocks],
            len: 0,
            hasher,
        }
    }

    /// Tokens in a block.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Indexed blocks.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is indexed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The root of `salt`, if anything is indexed under it.
    pub fn root(&self, salt: &[u8]) -> Option<NodeId> {
        self.roots.get(salt).copied()
    }

    /// The node that names `block`.
    pub fn node_of(&self, block: BlockId) -> Option<NodeId> {
        Some(self.node_of_block[block as usize]).filter(|&node| node != NONE)
    }

    /// The block of `node`, which is not a root.
    pub fn block(&self, node: NodeId) -> BlockId {
        debug_assert_ne!(self.nodes[node as usize].block, NONE);
        self.nodes[node as usize].block
    }

    /// The parent, None for roots.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        Some(self.nodes[node as usize].parent).filter(|&parent| parent != NONE)
    }

    /// The root above `node`.
    pub fn root_of(&self, node: NodeId) -> NodeId {
        self.nodes[node as usize].root
    }

    /// The salt of a root.
    pub fn salt(&self, root: NodeId) -> &[u8] {
        &self.salts[&root]
    }

    /// Every node but the roots, in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.node_of_block
            .iter()
            .copied()
            .filter(|&node| node != NONE)
    }

    /// Blocks from the root to `node`.
    pub fn depth(&self, node: NodeId) -> usize {
        self.nodes[node as usize].depth as usize
    }

    /// The tokens of `node`, which is not a root: `[block_size]`.
    pub fn tokens(&self, node: NodeId) -> &[TokenId] {
        &self.tokens[node as usize * self.block_size..][..self.block_size]
    }

    /// The roots in the order in which they were created, except where an id was reused.
    pub fn roots(&self) -> Vec<NodeId> {
        let mut roots: Vec<NodeId> = self.roots.values().copied().collect();
        roots.sort_unstable();
        roots
    }

    /// The children of `node`, newest first.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let first = self.nodes[node as usize].first_child;
        let next = |&node: &NodeId| Some(self.nodes[node as usize].next_sibling);
        let linked = |&node: &NodeId| node != NONE;
        std::iter::successors(Some(first).filter(linked), move |node| {
            next(node).filter(linked)
        })
    }

    /// The child of `parent` with these tokens: `[block_size]`.
    pub fn child(&self, parent: NodeId, tokens: &[TokenId]) -> Option<NodeId> {
        self.find(parent, tokens, self.hash(parent, tokens))
    }

    /// The leaf that following the newest children from `node` leads to. O(depth); O(1) if `node` is a leaf.
    pub fn leaf_below(&self, node: NodeId) -> NodeId {
        let mut at = node;
        while self.nodes[at as usize].first_child != NONE {
            at = self.nodes[at as usize].first_child;
        }
        at
    }

    /// The blocks of the longest indexed prefix of `tokens` under `salt`, first block first. Tokens
    /// after the last whole block are ignored.
    pub fn match_prefix(&self, salt: &[u8], tokens: &[TokenId]) -> Vec<BlockId> {
        let mut found = Vec::new();
        let Some(mut at) = self.root(salt) else {
            return found;
        };
        for block_tokens in tokens.chunks_exact(self.block_size) {
            match self.child(at, block_tokens) {
                Some(child) => at = child,
                None => break,
            }
            found.push(self.block(at));
        }
        found
    }

    /// The root of `salt`, created if it does not exist. A root that gets no child must be removed with
    /// [`Self::drop_root_if_empty`].
    pub(crate) fn root_or_new(&mut self, salt: &[u8]) -> NodeId {
        if let Some(root) = self.root(salt) {
            return root;
        }
        let root = self.new_node(Node {
            hash: 0,
            parent: NONE,
            root: NONE,
            first_child: NONE,
            previous_sibling: NONE,
            next_sibling: NONE,
            next_collision: NONE,
            block: NONE,
            depth: 0,
        });
        self.nodes[root as usize].root = root;
        let salt: Arc<[u8]> = salt.into();
        self.roots.insert(Arc::clone(&salt), root);
        self.salts.insert(root, salt);
        root
    }

    /// Removes `node` if it is a root without children.
    pub(crate) fn drop_root_if_empty(&mut self, node: NodeId) {
        if self.nodes[node as usize].first_child != NONE {
            return;
        }
        if let Some(salt) = self.salts.remove(&node) {
            self.roots.remove(&salt);
            self.unused.push(node);
        }
    }

    /// Adds a child of `parent` with these tokens and `block`. There is no such child yet, and `block` is
    /// not indexed.
    pub(crate) fn insert_child(
        &mut self,
        parent: NodeId,
        tokens: &[TokenId],
        block: BlockId,
    ) -> NodeId {
        let hash = self.hash(parent, tokens);
        debug_assert!(self.find(parent, tokens, hash).is_none());
        debug_assert!(self.node_of(block).is_none());
        let first_child = self.nodes[parent as usize].first_child;
        let node = self.new_node(Node {
            hash,
            parent,
            root: self.nodes[parent as usize].root,
            first_child: NONE,
            previous_sibling: NONE,
            next_sibling: first_child,
            next_collision: self.by_hash.get(&hash).copied().unwrap_or(NONE),
            block,
            depth: self.nodes[parent as usize].depth + 1,
        });
        let start = node as usize * self.block_size;
        self.tokens[start..start + self.block_size].copy_from_slice(tokens);
        if first_child != NONE {
            self.nodes[first_child as usize].previous_sibling = node;
        }
        self.nodes[parent as usize].first_child = node;
        self.by_hash.insert(hash, node);
        self.node_of_block[block as usize] = node;
        self.len += 1;
        node
    }

    /// Removes a leaf (and its root, if it was the last one) and returns its block.
    pub(crate) fn remove_leaf(&mut self, node: NodeId) -> BlockId {
        let Node {
            parent,
            first_child,
            previous_sibling,
            next_sibling,
            block,
            ..
        } = self.nodes[node as usize];
        assert!(
            first_child == NONE && block != NONE,
            "only leaves are removed"
        );
        self.unlink_collision(node);
        if next_sibling != NONE {
            self.nodes[next_sibling as usize].previous_sibling = previous_sibling;
        }
        if previous_sibling == NONE {
            self.nodes[parent as usize].first_child = next_sibling;
        } else {
            self.nodes[previous_sibling as usize].next_sibling = next_sibling;
        }
        self.nodes[node as usize].block = NONE;
        self.node_of_block[block as usize] = NONE;
        self.unused.push(node);
        self.len -= 1;
        self.drop_root_if_empty(parent);
        block
    }

    fn new_node(&mut self, node: Node) -> NodeId {
        match self.unused.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                self.tokens.resize(self.nodes.len() * self.block_size, 0);
                (self.nodes.len() - 1) as NodeId
            }
        }
    }

    fn hash(&self, parent: NodeId, tokens: &[TokenId]) -> u64 {
        self.hasher.hash_one((parent, tokens))
    }

    fn find(&self, parent: NodeId, tokens: &[TokenId], hash: u64) -> Option<NodeId> {
        let mut at = self.by_hash.get(&hash).copied().unwrap_or(NONE);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.parent == parent && self.tokens(at) == tokens {
                return Some(at);
            }
            at = node.next_collision;
        }
        None
    }

    fn unlink_collision(&mut self, node: NodeId) {
        let Node {
            hash,
            next_collision,
            ..
        } = self.nodes[node as usize];
        let first = self.by_hash[&hash];
        if first != node {
            let mut at = first;
            while self.nodes[at as usize].next_collision != node {
                at = self.nodes[at as usize].next_collision;
            }
            self.nodes[at as usize].next_collision = next_collision;
        } else if next_collision != NONE {
            self.by_hash.insert(hash, next_collision);
        } else {
            self.by_hash.remove(&hash);
        }
    }

    /// Checks every node; O(nodes). `check_edge(parent block, child block)` adds the pool's own invariants.
    pub(crate) fn check(
        &self,
        mut check_edge: impl FnMut(BlockId, BlockId) -> Result<(), String>,
    ) -> Result<(), String> {
        self.check_chains()?;
        let mut reached = 0;
        let mut stack: Vec<NodeId> = self.roots.values().copied().collect();
        if self.salts.len() != stack.len() {
            return Err("the trie's roots and salts disagree".to_owned());
        }
        if stack
            .iter()
            .any(|&root| self.nodes[root as usize].first_child == NONE)
        {
            return Err("the trie keeps a root without children".to_owned());
        }
        if self.nodes.len() != self.unused.len() + self.len + stack.len() {
            return Err("the trie has nodes that are neither used nor unused".to_owned());
        }
        while let Some(parent) = stack.pop() {
            let mut previous = NONE;
            let mut child = self.nodes[parent as usize].first_child;
            while child != NONE {
                self.check_child(parent, previous, child)?;
                if self.nodes[parent as usize].block != NONE {
                    check_edge(self.block(parent), self.block(child))?;
                }
                reached += 1;
                if reached > self.len {
                    return Err("the trie reaches more nodes than it has".to_owned());
                }
                stack.push(child);
                previous = child;
                child = self.nodes[child as usize].next_sibling;
            }
        }
        let named = self
            .node_of_block
            .iter()
            .filter(|&&node| node != NONE)
            .count();
        if (reached, named) != (self.len, self.len) {
            return Err(format!(
                "the trie reaches {reached} nodes, blocks name {named}, and it counts {}",
                self.len
            ));
        }
        Ok(())
    }

    /// Checks that every collision chain ends and that each node is in one chain, once.
    fn check_chains(&self) -> Result<(), String> {
        let mut chained = 0;
        for (&hash, &first) in &self.by_hash {
            let mut at = first;
            while at != NONE {
                chained += 1;
                if chained > self.len || self.nodes[at as usize].hash != hash {
                    return Err(format!("the trie's chain of hash {hash:#x} is damaged"));
                }
                at = self.nodes[at as usize].next_collision;
            }
        }
        if chained != self.len {
            return Err(format!(
                "hashes find {chained} of the trie's {} nodes",
                self.len
            ));
        }
        Ok(())
    }

    fn check_child(&self, parent: NodeId, previous: NodeId, child: NodeId) -> Result<(), String> {
        let node = &self.nodes[child as usize];
        if node.parent != parent || node.previous_sibling != previous {
            return Err(format!("trie node {child} has wrong neighbours"));
        }
        if node.depth != self.nodes[parent as usize].depth + 1 {
            return Err(format!("trie node {child} has the wrong depth"));
        }
        if self.node_of_block.get(node.block as usize) != Some(&child) {
            return Err(format!(
                "trie node {child} names block {}, which disagrees",
                node.block
            ));
        }
        if self.child(parent, self.tokens(child)) != Some(child) {
            return Err(format!("trie node {child} is not found by its own tokens"));
        }
        Ok(())
    }
}

/// The identity hash for 64-bit keys that are already keyed hashes.
#[derive(Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u64")
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
