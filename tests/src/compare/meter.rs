//! What a process has used, as the kernel counts it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// The processor time of process `id` so far, user and system, in seconds.
///
/// # Errors
/// When there is no such process.
pub fn cpu_seconds(id: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).context("the process has ended")?;
    // The name, in parentheses, may hold spaces; utime and stime are fields 14 and 15 of proc(5).
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|ticks| ticks.parse::<f64>().ok()).context("no times in stat");
    let (user, system) = (ticks()?, ticks()?);
    // SAFETY: sysconf only reads.
    let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Ok((user + system) / ticks_a_second as f64)
}

/// The most memory that process `id` has held at once, in megabytes.
///
/// # Errors
/// When there is no such process.
pub fn peak_megabytes(id: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).context("the process has ended")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("no VmHWM in status")?;
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok());
    Ok(kilobytes.context("VmHWM is a number")? * 1024.0 / 1e6)
}

/// The processor time of all children that have ended and been waited for, in seconds.
pub fn cpu_seconds_of_ended_children() -> f64 {
    cpu_seconds_of_usage(libc::RUSAGE_CHILDREN)
}

/// The processor time of this thread so far, in seconds.
pub fn cpu_seconds_of_this_thread() -> f64 {
    cpu_seconds_of_usage(libc::RUSAGE_THREAD)
}

fn cpu_seconds_of_usage(who: libc::c_int) -> f64 {
    // SAFETY: an all-zero rusage is valid, and getrusage only writes into it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Asks `address` for its API versions until it answers.
///
/// # Errors
/// When it does not within `patience`.
pub fn wait_for_an_answer(address: &str, patience: Duration) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !answers(address) {
        if begun.elapsed() > patience {
            bail!("{address} does not answer within {patience:?}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn answers(address: &str) -> bool {
    /// ApiVersions, version 0, correlation id 1, no client id, after its size.
    const REQUEST: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff];
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let limited = stream.set_read_timeout(Some(Duration::from_secs(1)));
    // The answer's size and its correlation id.
    let mut head = [0; 8];
    let exchanged = stream.write_all(&REQUEST).and_then(|()| stream.read_exact(&mut head));
    limited.is_ok() && exchanged.is_ok() && head[4..] == [0, 0, 0, 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_metered() {
        let (id, begun) = (std::process::id(), Instant::now());
        let before = cpu_seconds(id).expect("it runs");
        while cpu_seconds(id).expect("it runs") < before + 0.05 {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "busy for {:?} and no time used",
                begun.elapsed()
            );
        }
        let peak = peak_megabytes(id).expect("it runs");
        assert!((0.5..100_000.0).contains(&peak), "{peak} MB");
        assert!(cpu_seconds(u32::MAX).is_err());
    }
}
