//! Whether a member may commit offsets, and be told them.

use thalweg_protocol::ErrorCode;

use super::{ConsumerGroup, GroupEpoch, TopicIdPartition};
use crate::group::commit::Commit;

impl ConsumerGroup {
    /// Whether `commit` comes from somebody who may. A member may be behind with its epoch as long as it had the partitions
    /// then and has them still (KIP-1251).
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID; STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION for a member that speaks the classic protocol and for
    /// producers, which know no other; UNSUPPORTED_VERSION where the request cannot carry an epoch.
    pub(crate) fn check_commit(&self, commit: &Commit) -> Result<(), ErrorCode> {
        if commit.generation < 0 && self.is_empty() {
            return Ok(());
        }
        let is_transactional = commit.producer.is_some();
        if is_transactional
            && commit.generation < 0
            && commit.member_id.is_empty()
            && commit.instance_id.is_none()
        {
            return Ok(());
        }
        let member = self.known(&commit.member_id).map_err(|refusal| refusal.code)?;
        let epoch = GroupEpoch(commit.generation);
        let in_words_of_producers = |code| match code {
            ErrorCode::StaleMemberEpoch if is_transactional => ErrorCode::IllegalGeneration,
            code => code,
        };
        if member.classic.is_some() {
            return self.check_exactly(&commit.member_id, epoch);
        }
        if !is_transactional && !commit.knows_epochs {
            return Err(ErrorCode::UnsupportedVersion);
        }
        let Some(current) = self.image.current(&commit.member_id) else {
            return self.check_exactly(&commit.member_id, epoch).map_err(in_words_of_producers);
        };
        if epoch == current.epoch {
            return Ok(());
        }
        let partitions = commit.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| TopicIdPartition::new(topic.id, partition.partition))
        });
        let mut partitions = partitions.map(|at| current.assigned.get(&at).or(current.revoking.get(&at)));
        let had_all = partitions.all(|since| since.is_some_and(|since| *since <= epoch));
        if epoch < current.epoch && epoch.0 >= 0 && had_all {
            Ok(())
        } else {
            Err(in_words_of_producers(ErrorCode::StaleMemberEpoch))
        }
    }

    /// Whether offsets may be told to this member in this epoch; whoever names neither may know them.
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID; STALE_MEMBER_EPOCH or ILLEGAL_GENERATION.
    pub(crate) fn check_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        match member_id {
            None if epoch < 0 => Ok(()),
            member_id => self.check_exactly(member_id.unwrap_or_default(), GroupEpoch(epoch)),
        }
    }

    fn check_exactly(&self, member_id: &str, epoch: GroupEpoch) -> Result<(), ErrorCode> {
        let member = self.known(member_id).map_err(|refusal| refusal.code)?;
        let is_in = self.image.current(member_id).map_or(GroupEpoch::JOINING, |current| current.epoch);
        match (is_in == epoch, member.classic.is_some()) {
            (true, _) => Ok(()),
            (false, true) => Err(ErrorCode::IllegalGeneration),
            (false, false) => Err(ErrorCode::StaleMemberEpoch),
        }
    }
}
