//! Doing the same with many logs at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// More threads than this bring nothing: a disk has a queue of about that length.
const MOST: usize = 32;

/// Does `work` with each item, on about `threads` threads, at most 32. Returns the results in the order of the items.
pub(super) fn on_threads<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(MOST).min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = work(item);
                    done.lock().push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner();
    done.sort_unstable_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for threads in [0, 1, 3, 100] {
            for count in [0, 1, 2, 1000] {
                let items: Vec<usize> = (0..count).collect();
                let squares: Vec<usize> = items.iter().map(|item| item * item).collect();
                assert_eq!(on_threads(threads, &items, |item| item * item), squares, "{threads} {count}");
            }
        }
    }
}
