//! Share groups (KIP-932): queues, whose members get records one by one.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};
use thalweg_client::{ShareGroupDescription, ShareGroupOffset};
use thalweg_protocol::TopicPartition;

use super::explained;
use crate::exit::{Exit, failure};
use crate::output::{Format, Results, counted, line};
use crate::target::Target;

/// Where a share group is in a partition; `None` where it begins only with the next record that it gets.
type Place = Option<ShareGroupOffset>;

/// Where the group is in the partitions that it has read.
///
/// # Errors
/// Whatever keeps the cluster from telling it of any of them.
pub async fn places(target: &Target, group: &str) -> anyhow::Result<BTreeMap<TopicPartition, Place>> {
    let found = target.client().admin().share_group_offsets(group, None).await?;
    Ok(found.into_iter().map(|(at, place)| Ok((at, place?))).collect::<thalweg_client::Result<_>>()?)
}

/// `None` where it is not known of each partition, or there is none.
pub fn lag<'p>(places: impl IntoIterator<Item = &'p Place>) -> Option<i64> {
    let mut lags = places.into_iter().map(|place| Some(place.as_ref()?.lag? as i64)).peekable();
    lags.peek()?;
    lags.sum()
}

/// Prints a group, with its members and where it is in each partition.
pub async fn describe(target: &Target, group: &ShareGroupDescription, format: Format) -> anyhow::Result<()> {
    let mut places = places(target, &group.group).await?;
    for partition in group.members.iter().flat_map(|member| &member.assignment) {
        places.entry(partition.clone()).or_default();
    }
    match format {
        Format::Json => line(json(group, &places)),
        Format::Text => print(group, &places),
    }
}

fn start(place: &Place) -> Option<i64> {
    Some(place.as_ref()?.start_offset.0)
}

fn json(group: &ShareGroupDescription, places: &BTreeMap<TopicPartition, Place>) -> serde_json::Value {
    let members = group.members.iter().map(|member| {
        serde_json::json!({
            "member": &*member.id,
            "client": &*member.client_id,
            "host": &*member.host,
            "rack": member.rack.as_deref(),
            "partitions": member.assignment.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    });
    let partitions = places.iter().map(|(at, place)| {
        serde_json::json!({
            "topic": &*at.topic, "partition": at.partition, "start": start(place), "lag": lag([place]),
        })
    });
    serde_json::json!({
        "group": &*group.group,
        "state": group.state.as_str(),
        "type": "share",
        "assignor": &*group.assignor,
        "lag": lag(places.values()),
        "members": members.collect::<Vec<_>>(),
        "partitions": partitions.collect::<Vec<_>>(),
    })
}

fn print(group: &ShareGroupDescription, places: &BTreeMap<TopicPartition, Place>) -> anyhow::Result<()> {
    let number = |number: Option<i64>| number.map_or("-".to_owned(), |number| number.to_string());
    line(format_args!(
        "{} · {} · share · {} · {} · lag {}",
        group.group,
        group.state.as_str(),
        group.assignor,
        counted(group.members.len() as u64, "member"),
        number(lag(places.values())),
    ))?;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["TOPIC", "PARTITION", "START", "LAG"]);
    for (at, place) in places {
        let cells =
            [at.topic.to_string(), at.partition.to_string(), number(start(place)), number(lag([place]))];
        table.add_row(cells);
    }
    line(table)?;
    if group.members.is_empty() {
        return Ok(());
    }
    // Several read the same partition: they have a table of their own.
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["MEMBER", "CLIENT", "HOST", "PARTITIONS"]);
    for member in &group.members {
        let partitions: Vec<String> = member.assignment.iter().map(ToString::to_string).collect();
        let partitions = if partitions.is_empty() { "-".to_owned() } else { partitions.join(", ") };
        table.add_row([&*member.id, &*member.client_id, &*member.host, &*partitions]);
    }
    line(table)
}

/// Has the group forget where it is in topics.
///
/// # Errors
/// When nobody is there to be told; what concerns the group or a topic is among the results.
pub async fn forget(
    target: &Target,
    group: &str,
    topics: &[String],
    format: Format,
    results: &mut Results,
) -> anyhow::Result<()> {
    let places = places(target, group).await?;
    let is_read = |topic: &&String| places.keys().any(|at| at.topic == **topic);
    let (read, unread): (Vec<&String>, Vec<&String>) = topics.iter().partition(is_read);
    for topic in unread {
        results.fail(failure(Exit::NotFound, format!("group `{group}` has read nothing of {topic}")));
    }
    if read.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = read.iter().map(|topic| topic.as_str()).collect();
    let forgotten = match target.client().admin().delete_share_group_offsets(group, &names).await {
        Ok(forgotten) => forgotten,
        Err(error) => {
            results.fail(explained(target, group, error).await);
            return Ok(());
        }
    };
    for (topic, result) in forgotten {
        match result {
            Ok(()) if format == Format::Json => {
                line(serde_json::json!({"group": group, "topic": &*topic, "result": "deleted"}))?;
            }
            Ok(()) => line(format_args!("{group} has forgotten {topic}"))?,
            Err(error) => results.fail(explained(target, group, error).await),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::{LeaderEpoch, Offset};

    use super::*;

    #[test]
    fn a_lag_is_told_where_it_is_known_of_all() {
        let place =
            |lag| Some(ShareGroupOffset { start_offset: Offset(1), leader_epoch: LeaderEpoch(0), lag });
        for (places, expected) in [
            (&[place(Some(2)), place(Some(3))][..], Some(5)),
            (&[place(Some(2)), None], None),
            (&[place(None)], None),
            (&[], None),
        ] {
            assert_eq!(lag(places), expected, "{places:?}");
        }
    }
}
