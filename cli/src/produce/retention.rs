//! A warning about records that are so old when they are written that the topic soon deletes them.

use thalweg_client::Admin;
use thalweg_connectors::format_time;
use tokio::runtime::Handle;

use super::now_ms;
use crate::output::tell;
use crate::topic::TopicConfigs;

/// Looks at the timestamps that the input gives, and tells of the first one that the topic does not keep.
pub struct Retention {
    admin: Admin,
    topic: String,
    runtime: Handle,
    state: State,
}

enum State {
    /// No record from before now has been seen.
    Unasked,
    /// Older records than this many ms are deleted.
    Kept(i64),
    /// There is nothing more to tell.
    Settled,
}

impl Retention {
    /// Of `topic`. What this gives looks at records outside of the runtime.
    pub fn new(admin: Admin, topic: &str) -> Self {
        Self { admin, topic: topic.to_owned(), runtime: Handle::current(), state: State::Unasked }
    }

    /// Looks at the timestamp of a record from this line, and asks for the topic's configs when it is the first from before now.
    pub fn look_at(&mut self, timestamp: i64, line: u64) {
        // A negative one says that the time is not known; the log goes by the file's then.
        if timestamp < 0 || matches!(self.state, State::Settled) {
            return;
        }
        let age_ms = now_ms().saturating_sub(timestamp);
        if matches!(self.state, State::Unasked) && age_ms > 0 {
            self.state = self.runtime.block_on(self.kept()).map_or(State::Settled, State::Kept);
        }
        if let State::Kept(kept_ms) = self.state
            && age_ms > kept_ms
        {
            let (topic, time) = (&self.topic, format_time(timestamp));
            tell(format_args!(
                "warning: line {line} of the input has the time {time}, which is longer ago than the retention.ms of {topic} \
                 ({kept_ms}): such records are deleted soon. `thalweg topic alter {topic} -c retention.ms=-1` keeps them"
            ));
            self.state = State::Settled;
        }
    }

    /// For how long the topic keeps records, in ms after their timestamps; `None` where it is for ever, by when they are
    /// written, or not known.
    async fn kept(&self) -> Option<i64> {
        let configs = TopicConfigs::of(&self.admin, &self.topic).await.ok()?;
        let is_deleted = configs.has_retention()?;
        let is_its_own = configs.value("message.timestamp.type") == Some("CreateTime");
        let kept_ms = configs.value("retention.ms")?.parse().ok()?;
        (is_deleted && is_its_own && kept_ms >= 0).then_some(kept_ms)
    }
}
