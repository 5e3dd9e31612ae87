//! Takes out what is deleted, and what has expired.

use bytestring::ByteString;
use thalweg_protocol::{ErrorCode, Offset};

use super::{GroupShard, too_long};
use crate::coordinator::{JournalRecord, Now};
use crate::group::membership::Membership;
use crate::group::offsets::FetchedOffset;
use crate::group::records;
use crate::group::share::records as share_records;

/// What became of the offsets of one topic that were to be deleted: a code for each partition.
pub(crate) type DeletedOffsets = Vec<(ByteString, Vec<(i32, ErrorCode)>)>;

impl GroupShard {
    /// Deletes a group with its offsets. Returns the offset of the last tombstone.
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP while it has members.
    pub(crate) fn delete(&self, id: &ByteString) -> Result<Offset, ErrorCode> {
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        let group = state.groups.get(id).ok_or(ErrorCode::GroupIdNotFound)?;
        if !group.membership.is_deserted() || group.offsets.has_pending() {
            return Err(ErrorCode::NonEmptyGroup);
        }
        let offsets = group.offsets.known_partitions(false);
        let offsets = offsets.iter().flat_map(|(topic, at)| at.iter().map(move |at| (topic, *at)));
        let mut tombstones = offsets
            .map(|(topic, partition)| records::offset_record(id, topic, partition, None))
            .collect::<Result<Vec<_>, _>>()
            .map_err(too_long)?;
        tombstones.extend(membership_tombstones(id, &group.membership)?);
        let last = self.journal.append(&tombstones, now.wall_ms, None)?;
        state.groups.remove(id, now);
        Ok(last)
    }

    /// Deletes the offsets of `wanted` partitions, those of topics excepted that members of the group read (KIP-496). One
    /// that is not committed counts as deleted. Returns what became of each, and the offset of the last tombstone.
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP when it cannot be told what the members read.
    pub(crate) fn delete_offsets(
        &self,
        id: &ByteString,
        wanted: &[(ByteString, Vec<i32>)],
    ) -> Result<(DeletedOffsets, Option<Offset>), ErrorCode> {
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        let group = state.groups.get_mut(id).ok_or(ErrorCode::GroupIdNotFound)?;
        let read = group.membership.subscription()?;
        let (mut answers, mut deleted, mut tombstones) = (DeletedOffsets::new(), Vec::new(), Vec::new());
        for (topic, partitions) in wanted {
            let code = if read.contains(topic) { ErrorCode::GroupSubscribedToTopic } else { ErrorCode::None };
            answers.push((topic.clone(), partitions.iter().map(|&at| (at, code)).collect()));
            for &partition in partitions.iter().filter(|_| code == ErrorCode::None) {
                if group.offsets.fetch(topic, partition, false) != FetchedOffset::Missing {
                    tombstones.push(records::offset_record(id, topic, partition, None).map_err(too_long)?);
                    deleted.push((topic, partition));
                }
            }
        }
        if tombstones.is_empty() {
            return Ok((answers, None));
        }
        let last = self.journal.append(&tombstones, now.wall_ms, None)?;
        for (topic, partition) in deleted {
            group.offsets.remove(topic, partition, last.plus(1));
        }
        state.groups.remove_if_unused(id);
        Ok((answers, Some(last)))
    }

    /// Forgets offsets that nobody has used for the retention time, and groups that nothing is left of.
    pub(crate) fn expire_offsets(&self) {
        let clocks = &self.settings.setting.clocks;
        let (now, ageing_ms) = (clocks.now(), clocks.ageing_ms());
        let ids = self.state.lock().groups.ids();
        for id in ids {
            // One group per lock, so that nobody waits for all of them.
            if let Err(error) = self.expire_group(&id, now, ageing_ms) {
                tracing::warn!(group = %id, error = error.name(), "offsets that have expired are kept for now");
            }
        }
    }

    fn expire_group(&self, id: &ByteString, now: Now, ageing_ms: i64) -> Result<(), ErrorCode> {
        let mut state = self.state.lock();
        let Some(group) = state.groups.get_mut(id) else { return Ok(()) };
        // Share groups have no offsets, and what they have read is kept until they are deleted.
        if !group.membership.is_deserted() || group.membership.share().is_some() {
            return Ok(());
        }
        // A group that had members is idle since the last one left; others only keep offsets.
        let idle_since_ms = group.membership.deserted_since_ms();
        let expired = group.offsets.expired(ageing_ms, self.settings.retention_ms, idle_since_ms);
        let mut tombstones = expired
            .iter()
            .map(|(topic, partition)| records::offset_record(id, topic, *partition, None))
            .collect::<Result<Vec<_>, _>>()
            .map_err(too_long)?;
        let is_over = group.offsets.len() == expired.len() && !group.offsets.has_pending();
        if is_over {
            tombstones.extend(membership_tombstones(id, &group.membership)?);
        }
        if tombstones.is_empty() {
            return Ok(());
        }
        let last = self.journal.append(&tombstones, now.wall_ms, None)?;
        for (topic, partition) in &expired {
            group.offsets.remove(topic, *partition, last.plus(1));
        }
        if is_over {
            state.groups.remove(id, now);
        }
        Ok(())
    }
}

/// The records that end what the journal says of a group's members.
pub(super) fn membership_tombstones(
    id: &ByteString,
    membership: &Membership,
) -> Result<Vec<JournalRecord>, ErrorCode> {
    match membership {
        Membership::Classic(_) => Ok(vec![records::group_tombstone(id).map_err(too_long)?]),
        Membership::Consumer(group) => {
            let changes = group.image().tombstones();
            let tombstones = changes.iter().map(|change| records::consumer_record(id, change));
            tombstones.collect::<Result<_, _>>().map_err(too_long)
        }
        Membership::Share(group) => {
            let changes = group.image().tombstones();
            let tombstones = changes.iter().map(|change| share_records::record(id, change));
            tombstones.filter_map(Result::transpose).collect::<Result<_, _>>().map_err(too_long)
        }
    }
}
