//! Whole transactions on a disk that crashes at every operation: outputs and offsets are there together or not at
//! all, and whatever was answered stays.

use thalweg_storage::testing::Crash;

use super::driven::{App, Identity, stable_offset};
use crate::coordinator::rig::Rig;
use crate::transaction::{Outcome, TransactionVersion};

const TRANSACTIONS: i64 = 3;

/// What an application has seen happen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Commits that were answered.
    committed: i64,
    /// Commits that were asked for.
    asked: i64,
}

/// Where an application was when it failed.
#[derive(Clone, Copy)]
enum Pending {
    Write(Identity, i64),
    End(Identity, i64, Outcome),
}

async fn run(rig: &Rig, version: TransactionVersion, seen: &mut Seen) -> Result<(), Option<Pending>> {
    let mut app = rig.done(App::start_by(rig, version)).await.map_err(|_| None)?;
    for offset in 1..=TRANSACTIONS {
        // The second transaction is aborted the first time.
        let outcomes: &[Outcome] =
            if offset == 2 { &[Outcome::Abort, Outcome::Commit] } else { &[Outcome::Commit] };
        for &outcome in outcomes {
            let written = rig.done(app.write(&offset.to_string(), offset)).await;
            written.map_err(|_| Some(Pending::Write(app.identity, offset)))?;
            if outcome == Outcome::Commit {
                seen.asked = offset;
            }
            let before = app.identity;
            let ended = rig.done(app.end(outcome)).await;
            ended.map_err(|_| Some(Pending::End(before, offset, outcome)))?;
            if outcome == Outcome::Commit {
                seen.committed = offset;
            }
        }
    }
    Ok(())
}

impl Pending {
    /// An application that has lived through the crash tries again what it got no answer to, and commits if it can.
    async fn go_on(self, rig: &Rig, seen: &mut Seen) {
        let (mut app, offset, outcome) = match self {
            Self::Write(identity, offset) => {
                let app = App { rig, identity };
                if rig.done(app.write(&offset.to_string(), offset)).await.is_err() {
                    return;
                }
                (app, offset, Outcome::Commit)
            }
            Self::End(identity, offset, outcome) => (App { rig, identity }, offset, outcome),
        };
        if outcome == Outcome::Commit {
            seen.asked = offset;
        }
        if rig.done(app.end(outcome)).await.is_ok() && outcome == Outcome::Commit {
            seen.committed = offset;
        }
    }
}

/// Checks what is left after a crash, once everything has come to its end.
async fn check(rig: &Rig, seen: Seen, when: &str) {
    rig.settle().await;
    let app = rig.done(App::start(rig)).await;
    app.unwrap_or_else(|error| panic!("{when}: no new instance: {}", error.name()));
    rig.settle_until(async || !rig.has_open_transactions() && stable_offset(rig).await.is_some(), when).await;
    let offset = stable_offset(rig).await.expect("nothing is open");
    let expected: Vec<String> = (1..=offset).map(|offset| offset.to_string()).collect();
    for partition in [0, 1] {
        assert_eq!(rig.read_committed(partition), expected, "{when}: partition {partition}");
    }
    assert!((seen.committed..=seen.asked).contains(&offset), "{when}: {offset} of {seen:?}");
}

/// How many operations the whole history takes.
async fn operations(version: TransactionVersion) -> usize {
    let rig = Rig::new().await;
    let before = rig.filesystem.performed().len();
    let mut seen = Seen::default();
    assert!(run(&rig, version, &mut seen).await.is_ok(), "nothing fails");
    check(&rig, seen, "without a crash").await;
    assert_eq!(seen.committed, TRANSACTIONS);
    rig.filesystem.performed().len() - before
}

/// Crashes at every operation, or at every `step`th.
async fn sweep(version: TransactionVersion, step: usize, crash: impl Fn(usize) -> Crash) {
    for at in (0..operations(version).await).step_by(step) {
        let rig = Rig::new().await;
        rig.filesystem.crash_at(rig.filesystem.performed().len() + at);
        let mut seen = Seen::default();
        let mode = crash(at);
        let pending = run(&rig, version, &mut seen).await.err().flatten();
        let rig = rig.restart(mode).await;
        if let Some(pending) = pending {
            pending.go_on(&rig, &mut seen).await;
        }
        check(&rig, seen, &format!("{version:?}, {mode:?} at {at}")).await;
    }
}

#[tokio::test]
async fn the_process_is_killed_at_every_third_operation() {
    sweep(TransactionVersion::EpochBump, 3, |_| Crash::Kept).await;
}

#[tokio::test]
async fn the_power_goes_at_every_operation() {
    sweep(TransactionVersion::EpochBump, 1, |_| Crash::Dropped).await;
}

#[tokio::test]
async fn the_power_goes_and_leaves_anything_of_what_was_not_synced() {
    sweep(TransactionVersion::EpochBump, 1, |at| Crash::Torn(at as u64)).await;
}

#[tokio::test]
async fn the_power_goes_under_the_old_rules() {
    sweep(TransactionVersion::Classic, 2, |_| Crash::Dropped).await;
}

#[tokio::test]
async fn the_power_goes_and_leaves_anything_under_the_old_rules() {
    sweep(TransactionVersion::Classic, 2, |at| Crash::Torn(at as u64)).await;
}
