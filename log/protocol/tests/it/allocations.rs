//! Counts what a thread allocates, so that tests can hold memory to a bound.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static CURRENT: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(size: isize) {
    CURRENT.set(CURRENT.get() + size);
    PEAK.set(PEAK.get().max(CURRENT.get()));
    if size > 0 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    }
}

// SAFETY: every call goes to the system's allocator as it is; counting touches no memory of the caller, and the
// thread-locals are const-initialised and have no destructor, so that they don't allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Old and new may exist at once.
        count(new_size as isize);
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// Runs `work` and returns the most bytes this thread held at once beyond what it held before.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = CURRENT.get();
    PEAK.set(before);
    let result = work();
    (result, usize::try_from(PEAK.get() - before).unwrap_or(0))
}

/// Runs `work` and returns how often this thread allocated.
pub fn allocations_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATIONS.get();
    let result = work();
    (result, ALLOCATIONS.get() - before)
}
