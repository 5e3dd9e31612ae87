//! Exactly once, proved: the counting programs and the server are killed again and again while flights arrive,
//! and every carrier is still counted exactly once.
//!
//! `make test` kills each of the three 25 times at random, beside the kills at the steps of the commit; `make soak`
//! 200 times. `THALWEG_RANDOM_KILLS` says how often, `THALWEG_SEED` when.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use thalweg_streams::{CommitOrder, CommitStep};
use thalweg_tests::counting::{Application, Emit, INPUT, Program, create_topic};
use thalweg_tests::feed::{Feed, Flights};
use thalweg_tests::flights;
use thalweg_tests::node::Node;
use thalweg_tests::peers::kafka::Kafka;
use thalweg_tests::setting;

/// How long it may take from going live until all results are readable. A killed process leaves a transaction,
/// which holds readers back until its timeout of 10 s.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often to kill at random, and the dice that say when.
fn random_kills() -> anyhow::Result<(u64, fastrand::Rng)> {
    let seed = setting("THALWEG_SEED", 1)?;
    Ok((setting("THALWEG_RANDOM_KILLS", 25)?, fastrand::Rng::with_seed(seed)))
}

/// Flights for as long as they are wanted: 5,000 a second.
fn feed(address: &str) -> Feed {
    Feed::start(address, INPUT, std::iter::repeat_with(flights::rows).flatten(), 25)
}

/// Before and after each step of the commit, at one of its first three passings.
fn failpoints(random: &mut fastrand::Rng) -> Vec<String> {
    let places = CommitStep::ALL.iter().flat_map(|step| [("before", step), ("after", step)]);
    places.map(|(moment, step)| format!("{moment}:{}:{}", step.name(), random.u32(1..4))).collect()
}

fn die_at(application: &mut Application, failpoint: &str, flush: bool) -> anyhow::Result<()> {
    application.start(Some(failpoint), flush)?;
    application.wait_for_abort().with_context(|| failpoint.to_owned())
}

/// Kills it after up to three commits and up to one and a half intervals between them: while it opens its state,
/// while it works, in the middle of a commit.
fn kill_at_random(application: &mut Application, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    application.start(None, random.bool())?;
    for _ in 0..random.u32(..4) {
        application.wait_for("commit")?;
    }
    std::thread::sleep(Duration::from_micros(random.u64(..150_000)));
    application.kill()
}

fn kill_program(program: Program) -> anyhow::Result<()> {
    let (kills, mut random) = random_kills()?;
    let directory = tempfile::tempdir()?;
    let node = Node::start(&directory.path().join("log"), "127.0.0.1:0")?;
    create_topic(node.address(), INPUT, 2)?;
    let feed = feed(node.address());
    let mut applications = Vec::new();
    let begun = Instant::now();
    for (emit, kills) in [(Emit::PerRecord, kills - kills / 3), (Emit::PerCommit, kills / 3)] {
        let mut application = Application::new(program, emit, node.address(), directory.path())?;
        for failpoint in failpoints(&mut random) {
            die_at(&mut application, &failpoint, random.bool())?;
        }
        for _ in 0..kills {
            kill_at_random(&mut application, &mut random)?;
        }
        applications.push(application);
    }
    let flights = feed.stop()?;
    println!("{program:?}: 20 kills at steps and {kills} at random in {:?}", begun.elapsed());
    for mut application in applications {
        let fault = application.finish(&flights, PATIENCE)?;
        ensure!(fault.is_none(), "{fault:?}");
        // Else nothing was lost with the memory of those that were killed.
        ensure!(application.found_behind() > 0, "no store was ever behind its changelog");
    }
    Ok(())
}

#[test]
fn the_typed_program_is_killed() -> anyhow::Result<()> {
    kill_program(Program::Typed)
}

#[test]
fn the_arrow_program_is_killed() -> anyhow::Result<()> {
    kill_program(Program::Arrow)
}

#[test]
fn wrong_orders_of_the_commit_are_noticed() -> anyhow::Result<()> {
    for (order, failpoint) in [
        (CommitOrder::Sound, "after:WriteState"),
        (CommitOrder::StateBeforeEnd, "after:WriteState"),
        (CommitOrder::OffsetsAfterEnd, "before:SendOffsets"),
        (CommitOrder::ChangelogAfterEnd, "before:SendChangelog"),
    ] {
        let directory = tempfile::tempdir()?;
        let node = Node::start(&directory.path().join("log"), "127.0.0.1:0")?;
        create_topic(node.address(), INPUT, 2)?;
        let feed = feed(node.address());
        let mut applications = Vec::new();
        for program in [Program::Typed, Program::Arrow] {
            let application = Application::new(program, Emit::PerRecord, node.address(), directory.path())?;
            let mut application = application.in_order(order);
            // The first commits may be of threads that have regrouped flights and counted none.
            for passing in 3..7 {
                die_at(&mut application, &format!("{failpoint}:{passing}"), true)?;
            }
            applications.push(application);
        }
        let flights = feed.stop()?;
        for mut application in applications {
            let is_sound = order == CommitOrder::Sound;
            let patience = if is_sound { PATIENCE } else { Duration::from_secs(1) };
            let fault = application.finish(&flights, patience)?;
            ensure!(fault.is_none() == is_sound, "{order:?}: {fault:?}");
            println!("{order:?}: {fault:?}");
        }
    }
    Ok(())
}

#[test]
fn the_server_is_killed() -> anyhow::Result<()> {
    let (kills, mut random) = random_kills()?;
    let directory = tempfile::tempdir()?;
    let log = directory.path().join("log");
    let mut server = Node::start(&log, "127.0.0.1:0")?;
    let address = server.address().to_owned();
    create_topic(&address, INPUT, 2)?;
    let feed = feed(&address);
    let mut typed = Application::new(Program::Typed, Emit::PerRecord, &address, directory.path())?;
    let mut arrow = Application::new(Program::Arrow, Emit::PerCommit, &address, directory.path())?;
    let begun = Instant::now();
    for application in [&mut typed, &mut arrow] {
        for failpoint in failpoints(&mut random) {
            application.start(Some(&format!("{failpoint}:stall")), random.bool())?;
            application.wait_for("stalled")?;
            server.kill_and_restart()?;
            application.wait_for("commit").context(failpoint)?;
            application.kill()?;
        }
    }
    typed.start(None, false)?;
    arrow.start(None, false)?;
    for kill in 0..kills {
        let application = if kill % 2 == 0 { &mut typed } else { &mut arrow };
        // A commit of before the last kill does not count.
        application.hear_out()?;
        application.wait_for("commit")?;
        std::thread::sleep(Duration::from_micros(random.u64(..300_000)));
        // Sometimes one of the programs goes with the server.
        let is_joint = random.u32(..4) == 0;
        if is_joint {
            application.kill()?;
        }
        server.kill_and_restart()?;
        if is_joint {
            application.start(None, random.bool())?;
        }
    }
    let flights = feed.stop()?;
    println!("server: 20 kills at steps and {kills} at random in {:?}", begun.elapsed());
    for mut application in [typed, arrow] {
        application.end()?;
        let fault = application.finish(&flights, PATIENCE)?;
        ensure!(fault.is_none(), "{fault:?}");
    }
    ensure!(server.stop()? == 0, "the server stops in order");
    Ok(())
}

/// Half of the year's flights.
const HALF: usize = 336_776 / 2;

#[test]
fn both_programs_are_killed_on_kafka_and_lose_their_state() -> anyhow::Result<()> {
    let kafka = Kafka::start()?;
    let directory = tempfile::tempdir()?;
    let mut random = fastrand::Rng::with_seed(setting("THALWEG_SEED", 1)?);
    create_topic(kafka.address(), INPUT, 4)?;
    let application = |program, emit| Application::new(program, emit, kafka.address(), directory.path());
    let mut applications = [
        application(Program::Typed, Emit::PerRecord)?,
        application(Program::Typed, Emit::PerCommit)?,
        application(Program::Arrow, Emit::PerRecord)?,
        application(Program::Arrow, Emit::PerCommit)?,
    ];
    let mut flights = Flights::new();
    for half in 0..2 {
        // Half a year in ten seconds.
        let rows = flights::rows().skip(half * HALF).take(HALF);
        let feed = Feed::start(kafka.address(), INPUT, rows, 85);
        for application in &mut applications {
            for _ in 0..4 {
                kill_at_random(application, &mut random)?;
            }
        }
        for (carrier, n) in feed.run_out()? {
            *flights.entry(carrier).or_default() += n;
        }
        if half == 0 {
            // Nothing is left of what the group knows as a member, and of its transaction.
            for application in &mut applications {
                application.lose_state()?;
                kill_at_random(application, &mut random)?;
                application.start(None, false)?;
                application.wait_for("live")?;
                application.kill()?;
            }
        }
    }
    let year: Flights = flights::PER_CARRIER.into_iter().map(|(carrier, n)| (carrier, n.into())).collect();
    ensure!(flights == year, "{flights:?} were sent");
    for mut application in applications {
        let fault = application.finish(&flights, PATIENCE)?;
        ensure!(fault.is_none(), "{fault:?}");
    }
    Ok(())
}
