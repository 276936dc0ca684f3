//! The synchronization primitives of the pool: the standard library's, or loom's in its model (`interleavings.rs`).

#[cfg(loom)]
pub(super) use self::modelled::{AtomicBool, AtomicU32, AtomicU64};
#[cfg(loom)]
pub(super) use loom::{
    cell::UnsafeCell,
    sync::{Condvar, Mutex},
};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
#[cfg(not(loom))]
pub(super) use std::sync::{Condvar, Mutex};

/// A cell with loom's interface: its contents are reached only inside a closure, so that the model sees the access.
#[cfg(not(loom))]
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// loom treats sequentially consistent accesses as acquire and release, but models such fences: two of them around
/// every access restore the order that the pool relies on.
#[cfg(loom)]
mod modelled {
    use loom::sync::atomic::{self, Ordering, fence};

    macro_rules! modelled {
        ($name:ident, $value:ty) => {
            pub struct $name(atomic::$name);

            impl $name {
                pub fn new(value: $value) -> Self {
                    Self(atomic::$name::new(value))
                }

                fn ordered<R>(access: impl FnOnce() -> R) -> R {
                    fence(Ordering::SeqCst);
                    let result = access();
                    fence(Ordering::SeqCst);
                    result
                }

                pub fn load(&self, order: Ordering) -> $value {
                    Self::ordered(|| self.0.load(order))
                }

                pub fn store(&self, value: $value, order: Ordering) {
                    Self::ordered(|| self.0.store(value, order));
                }
            }
        };
    }

    modelled!(AtomicBool, bool);
    modelled!(AtomicU32, u32);
    modelled!(AtomicU64, u64);

    impl AtomicU32 {
        pub fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
            Self::ordered(|| self.0.fetch_add(value, order))
        }

        pub fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
            Self::ordered(|| self.0.fetch_sub(value, order))
        }
    }

    impl AtomicU64 {
        pub fn fetch_update(
            &self,
            set: Ordering,
            fetch: Ordering,
            change: impl FnMut(u64) -> Option<u64>,
        ) -> Result<u64, u64> {
            Self::ordered(|| self.0.fetch_update(set, fetch, change))
        }
    }
}
