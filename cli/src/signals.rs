//! The signals that end a command.

use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, as Ctrl-C sends it, and SIGTERM. From when this is made neither ends the program by itself.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for one, and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Waits for the first that comes after this was first called. A second one ends the program at once, whatever it is doing:
/// a command may be busy with what cannot be interrupted.
///
/// # Errors
/// As [`Signals::new`].
pub async fn ended() -> io::Result<()> {
    END_AT_SECOND.call_once(end_at_second);
    let mut signals = Signals::new()?;
    if SEEN.load(Ordering::SeqCst) == 0 {
        signals.next().await;
    }
    Ok(())
}

/// What a signal finds is not the program's to choose: these two belong to the whole process, as signals do.
static END_AT_SECOND: Once = Once::new();
static SEEN: AtomicU32 = AtomicU32::new(0);

/// Has signals counted. Who listens through [`Signals`] hears of them all the same: tokio calls what was there before.
fn end_at_second() {
    for number in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the action is zeroed, which is valid, but for a handler that does only what a handler may do.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            // It cannot fail for these signals.
            libc::sigaction(number, &action, std::ptr::null_mut());
        }
    }
}

extern "C" fn count(_number: libc::c_int) {
    const SAID: &[u8] = b"error: interrupted again: ended at once\n";
    if SEEN.fetch_add(1, Ordering::SeqCst) > 0 {
        // SAFETY: both may be called in a handler, and the text is as long as is said.
        unsafe {
            libc::write(libc::STDERR_FILENO, SAID.as_ptr().cast(), SAID.len());
            libc::_exit(crate::exit::Exit::Failed as i32);
        }
    }
}
