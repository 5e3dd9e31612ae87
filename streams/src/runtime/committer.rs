//! The commit of a thread's tasks, step by step.

use thalweg_protocol::TopicPartition;

use super::commit::CommitStep;
use super::failpoint::{Moment, TestHooks};
use super::log::TransactionLog;
use super::opening::LastCommit;
use super::task::Task;
use crate::error::Error;

/// Commits the tasks in one transaction. On an error nothing more may be done with them: they must be
/// opened again, from what the log says was committed.
pub(crate) fn commit(
    tasks: &mut [&mut Task],
    log: &mut dyn TransactionLog,
    hooks: &TestHooks,
) -> Result<(), Error> {
    for task in &mut *tasks {
        task.before_commit()?;
    }
    let mut ended = false;
    for step in hooks.commit_order.steps() {
        hooks.pass(Moment::Before, step)?;
        match step {
            CommitStep::SendOutputs => send_outputs(tasks, log)?,
            CommitStep::SendChangelog => send_changelog(tasks, log)?,
            CommitStep::SendOffsets => send_offsets(tasks, log)?,
            CommitStep::EndTransaction => end_transaction(tasks, log)?,
            CommitStep::WriteState => write_state(tasks, hooks.flush_state)?,
        }
        // Only in a wrong order is anything sent after the end: it gets a transaction of its own.
        if ended && step != CommitStep::WriteState {
            log.end_transaction()?;
        }
        ended |= step == CommitStep::EndTransaction;
        hooks.pass(Moment::After, step)?;
    }
    Ok(())
}

fn send_outputs(tasks: &mut [&mut Task], log: &mut dyn TransactionLog) -> Result<(), Error> {
    for task in tasks {
        for topic in task.output_topics() {
            log.send(topic)?;
        }
    }
    Ok(())
}

fn send_changelog(tasks: &mut [&mut Task], log: &mut dyn TransactionLog) -> Result<(), Error> {
    for task in &mut *tasks {
        for changelog in task.changelog_records() {
            log.send(changelog)?;
        }
    }
    log.flush()?;
    let changed: Vec<_> = tasks.iter().map(|task| task.changed_stores()).collect();
    let partitions: Vec<_> = changed.iter().flatten().map(|(_, partition)| partition.clone()).collect();
    if partitions.is_empty() {
        return Ok(());
    }
    // Nobody else writes to a task's changelogs, so their ends are where this commit's records end.
    let mut ends = log.ends_of(&partitions)?.into_iter();
    for (task, changed) in tasks.iter_mut().zip(changed) {
        for ((store, _), end) in changed.iter().zip(&mut ends) {
            task.set_changelog_end(store, end);
        }
    }
    Ok(())
}

fn send_offsets(tasks: &mut [&mut Task], log: &mut dyn TransactionLog) -> Result<(), Error> {
    let mut offsets = Vec::new();
    for task in tasks {
        offsets.append(&mut task.offsets()?);
    }
    log.send_offsets(&offsets)
}

fn end_transaction(tasks: &mut [&mut Task], log: &mut dyn TransactionLog) -> Result<(), Error> {
    match log.end_transaction() {
        Err(Error::UnknownOutcome { reason }) => {
            tracing::warn!(reason, "the outcome of a commit is unknown; fencing and looking it up");
            settle(tasks, log, reason)
        }
        ended => ended,
    }
}

/// Finds out whether the transaction was committed: its commit numbers are in the metadata of the offsets
/// that were part of it. All tasks were in the same transaction, so the first one's number decides.
fn settle(tasks: &[&mut Task], log: &mut dyn TransactionLog, reason: String) -> Result<(), Error> {
    log.fence()?;
    let Some(task) = tasks.first() else { return Ok(()) };
    let partitions: Vec<TopicPartition> = task.sources().map(|(_, partition)| partition.clone()).collect();
    let committed = LastCommit::read(&log.committed(&partitions)?)?.checkpoint.sequence;
    match committed == task.next_sequence() {
        true => Ok(()),
        false => Err(Error::Aborted { reason }),
    }
}

fn write_state(tasks: &mut [&mut Task], flush: bool) -> Result<(), Error> {
    for task in tasks {
        task.write_state()?;
        if flush {
            task.state().flush()?;
        }
    }
    Ok(())
}
