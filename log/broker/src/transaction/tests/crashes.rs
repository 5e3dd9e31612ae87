//! Whole transactions on a disk that crashes at every operation: outputs and offsets are there together or not at
//! all, and whatever was answered stays.

use thalweg_storage::testing::Crash;

use super::driven::{App, stable_offset};
use crate::coordinator::rig::Rig;
use crate::transaction::{Outcome, Producer};

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
#[derive(Clone, Copy, Debug)]
enum Pending {
    Write { producer: Producer, offset: i64 },
    End { producer: Producer, offset: i64, outcome: Outcome },
}

async fn run(rig: &Rig, seen: &mut Seen) -> Result<(), Option<Pending>> {
    let mut app = rig.done(App::start(rig)).await.map_err(|_| None)?;
    for offset in 1..=TRANSACTIONS {
        // The second transaction is aborted the first time.
        let outcomes: &[Outcome] =
            if offset == 2 { &[Outcome::Abort, Outcome::Commit] } else { &[Outcome::Commit] };
        for &outcome in outcomes {
            let producer = app.producer;
            let written = rig.done(app.write(&offset.to_string(), offset)).await;
            written.map_err(|_| Some(Pending::Write { producer, offset }))?;
            if outcome == Outcome::Commit {
                seen.asked = offset;
            }
            let ended = rig.done(app.end(outcome)).await;
            ended.map_err(|_| Some(Pending::End { producer, offset, outcome }))?;
            if outcome == Outcome::Commit {
                seen.committed = offset;
            }
        }
    }
    Ok(())
}

/// An application that has lived through the crash tries again what it got no answer to, and commits if it can.
async fn go_on(rig: &Rig, pending: Pending, seen: &mut Seen) {
    let (producer, offset, outcome) = match pending {
        Pending::Write { producer, offset } => {
            let app = App { rig, producer };
            if rig.done(app.write(&offset.to_string(), offset)).await.is_err() {
                return;
            }
            (producer, offset, Outcome::Commit)
        }
        Pending::End { producer, offset, outcome } => (producer, offset, outcome),
    };
    if outcome == Outcome::Commit {
        seen.asked = offset;
    }
    let ended = rig.done(App { rig, producer }.end(outcome)).await;
    if outcome == Outcome::Commit && ended.is_ok() {
        seen.committed = offset;
    }
}

/// Checks what is left after a crash, once everything has come to its end.
async fn check(rig: &Rig, seen: Seen, when: &str) {
    rig.settle().await;
    let app = rig.done(App::start(rig)).await;
    app.unwrap_or_else(|error| panic!("{when}: no new instance: {}", error.name()));
    rig.settle().await;
    assert!(!rig.has_open_transactions(), "{when}: a transaction hangs");
    let offset = stable_offset(rig).await.expect("nothing is open");
    let expected: Vec<String> = (1..=offset).map(|offset| offset.to_string()).collect();
    for partition in [0, 1] {
        assert_eq!(rig.read_committed(partition), expected, "{when}: partition {partition}");
    }
    assert!((seen.committed..=seen.asked).contains(&offset), "{when}: {offset} of {seen:?}");
}

/// How many operations the whole history takes.
async fn operations() -> usize {
    let rig = Rig::new().await;
    let before = rig.filesystem.performed().len();
    let mut seen = Seen::default();
    assert!(run(&rig, &mut seen).await.is_ok(), "nothing fails");
    check(&rig, seen, "without a crash").await;
    assert_eq!(seen.committed, TRANSACTIONS);
    rig.filesystem.performed().len() - before
}

async fn sweep(crash: impl Fn(usize) -> Crash, step: usize) {
    for at in (0..operations().await).step_by(step) {
        let rig = Rig::new().await;
        rig.filesystem.crash_at(rig.filesystem.performed().len() + at);
        let mut seen = Seen::default();
        let outcome = run(&rig, &mut seen).await;
        let mode = crash(at);
        let rig = rig.restart(mode).await;
        if let Err(Some(pending)) = outcome {
            go_on(&rig, pending, &mut seen).await;
        }
        check(&rig, seen, &format!("{mode:?} at {at}")).await;
    }
}

#[tokio::test]
async fn the_process_is_killed_at_every_operation() {
    sweep(|_| Crash::Kept, 1).await;
}

#[tokio::test]
async fn the_power_goes_at_every_operation() {
    sweep(|_| Crash::Dropped, 1).await;
}

#[tokio::test]
async fn the_power_goes_and_leaves_anything_of_what_was_not_synced() {
    sweep(|at| Crash::Torn(at as u64), 1).await;
}
