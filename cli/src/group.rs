//! `thalweg group`: consumer groups and share groups, where they stand, and moving or deleting where they have come to.

pub mod share;

use std::collections::{BTreeMap, HashMap};

use comfy_table::{Table, presets};
use thalweg_client::{
    CommittedOffset, Error, GroupDescription, GroupFilter, GroupState, GroupType, Isolation, ListedGroup,
    MemberDescription,
};
use thalweg_protocol::{ErrorCode, Offset, TopicPartition};

use crate::advice::did_you_mean;
use crate::exit::{Exit, failure};
use crate::extents::Extents;
use crate::offset_range::OffsetRange;
use crate::output::{Format, Results, confirmed, counted, line, nothing_deleted, tell};
use crate::produce::now_ms;
use crate::target::{Target, TargetArgs};

/// What to do with groups.
#[derive(Debug, clap::Subcommand)]
pub enum GroupCommand {
    /// List groups
    List,
    /// Show members, and per partition what was committed (of a share group: where it begins) and how far that is behind
    Describe {
        /// The groups
        #[arg(required = true)]
        groups: Vec<String>,
    },
    /// Have a group without members go on elsewhere
    Seek(SeekArgs),
    /// Delete groups with where they have come to, or (with --topic) where they have come to in topics
    Delete {
        /// The groups
        #[arg(required = true)]
        groups: Vec<String>,
        /// Only where they have come to in this topic; may be repeated
        #[arg(long, short = 't', value_name = "TOPIC")]
        topic: Vec<String>,
        /// Do not ask
        #[arg(long, short = 'y')]
        yes: bool,
    },
}

/// Which group goes where.
#[derive(Debug, clap::Args)]
pub struct SeekArgs {
    /// The group; it is made if there is none
    group: String,
    /// Make a share group (KIP-932) where there is no group of this name; of one that is there the type is known
    #[arg(long)]
    share: bool,
    /// Where it goes on: start, end, 42, +10, -5, @2026-01-01T00:00:00Z, @-1h
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    to: String,
    /// Only in this topic, which the group need not have read before; may be repeated
    #[arg(long, short = 't', value_name = "TOPIC")]
    topic: Vec<String>,
    /// Only in these partitions
    #[arg(long, short = 'p', value_name = "N", value_delimiter = ',')]
    partition: Vec<i32>,
    /// Only show where it would go on
    #[arg(long)]
    dry_run: bool,
}

/// Runs one of the commands.
pub async fn run(command: GroupCommand, target: &TargetArgs, format: Format) -> anyhow::Result<()> {
    let target = target.open().await?;
    let result = match command {
        GroupCommand::List => list(&target, format).await,
        GroupCommand::Describe { groups } => describe(&target, &groups, format).await,
        GroupCommand::Seek(args) => seek(&target, args, format).await,
        GroupCommand::Delete { groups, topic, yes } if topic.is_empty() => {
            delete(&target, &groups, yes, format).await
        }
        GroupCommand::Delete { groups, topic, yes } => {
            delete_offsets(&target, &groups, &topic, yes, format).await
        }
    };
    result.and(target.close().await)
}

async fn list(target: &Target, format: Format) -> anyhow::Result<()> {
    let listing = target.client().admin().list_groups(&GroupFilter::default()).await?;
    for (broker, error) in &listing.failed {
        tell(format_args!("warning: the groups of broker {broker} are missing: {error}"));
    }
    let state =
        |state: &Option<GroupState>| state.as_ref().map_or("-".to_owned(), |state| state.as_str().to_owned());
    if format == Format::Json {
        for group in &listing.found {
            line(serde_json::json!({
                "group": &*group.group,
                "state": group.state.as_ref().map(GroupState::as_str),
                "type": group.group_type.as_ref().map(|kind| kind.as_str()),
                "protocol_type": &*group.protocol_type,
            }))?;
        }
        return Ok(());
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["GROUP", "STATE", "TYPE", "PROTOCOL TYPE"]);
    for group in &listing.found {
        let kind = group.group_type.as_ref().map_or("-", |kind| kind.as_str());
        let protocol_type = if group.protocol_type.is_empty() { "-" } else { &*group.protocol_type };
        table.add_row([&*group.group, &*state(&group.state), kind, protocol_type]);
    }
    line(table)
}

/// A group's place in a partition.
struct Standing {
    committed: Option<i64>,
    end: Option<i64>,
    /// Who reads it, by its place among the members.
    member: Option<usize>,
}

impl Standing {
    fn lag(&self) -> Option<i64> {
        Some((self.end? - self.committed?).max(0))
    }
}

/// `None` where it is not known of each partition, such as one that is read and of which nothing has been committed.
fn total_lag(standings: &BTreeMap<TopicPartition, Standing>) -> Option<i64> {
    standings.values().map(Standing::lag).sum()
}

async fn describe(target: &Target, groups: &[String], format: Format) -> anyhow::Result<()> {
    let names: Vec<&str> = groups.iter().map(String::as_str).collect();
    let admin = target.client().admin();
    let mut described = admin.describe_groups(&names).await;
    let mut results = Results::default();
    for group in groups {
        match described.remove(group.as_str()) {
            Some(Ok(group)) => {
                let standings = standings(target, &group).await?;
                match format {
                    Format::Json => line(json(&group, &standings))?,
                    Format::Text => print(&group, &standings)?,
                }
            }
            Some(Err(error)) if error.code() == Some(ErrorCode::GroupIdNotFound) => {
                // What is no other group may be a share group.
                match admin.describe_share_groups(&[group]).await.remove(group.as_str()) {
                    Some(Ok(group)) => share::describe(target, &group, format).await?,
                    _ => results.fail(explained(target, group, error).await),
                }
            }
            Some(Err(error)) => results.fail(explained(target, group, error).await),
            None => {}
        }
    }
    results.finish()
}

/// What the group has committed, and what its members read.
async fn standings(
    target: &Target,
    group: &GroupDescription,
) -> anyhow::Result<BTreeMap<TopicPartition, Standing>> {
    let admin = target.client().admin();
    let committed = admin.committed_offsets(&group.group, None, false).await?;
    let mut standings: BTreeMap<TopicPartition, Standing> = BTreeMap::new();
    for (partition, offset) in committed {
        let committed = Some(offset.offset.0).filter(|offset| *offset >= 0);
        standings.insert(partition, Standing { committed, end: None, member: None });
    }
    for (at, member) in group.members.iter().enumerate() {
        for partition in &member.assignment {
            let new = || Standing { committed: None, end: None, member: None };
            standings.entry(partition.clone()).or_insert_with(new).member = Some(at);
        }
    }
    let known = existing(target, standings.keys()).await?;
    let extents = Extents::of(admin, &known, Isolation::ReadUncommitted).await?;
    for (partition, standing) in &mut standings {
        standing.end = extents.end(partition);
    }
    Ok(standings)
}

/// Those partitions that there still are: a group remembers deleted topics for a while.
async fn existing<'a>(
    target: &Target,
    partitions: impl Iterator<Item = &'a TopicPartition>,
) -> anyhow::Result<Vec<TopicPartition>> {
    let topics = target.client().admin().list_topics().await?;
    let counts: HashMap<&str, i32> =
        topics.iter().map(|topic| (&*topic.name, topic.partitions.len() as i32)).collect();
    let exists = |at: &&TopicPartition| counts.get(&*at.topic).is_some_and(|count| at.partition < *count);
    Ok(partitions.filter(exists).cloned().collect())
}

fn name_of(member: &MemberDescription) -> &str {
    member.instance_id.as_deref().unwrap_or(&member.id)
}

fn json(group: &GroupDescription, standings: &BTreeMap<TopicPartition, Standing>) -> serde_json::Value {
    let members = group.members.iter().map(|member| {
        serde_json::json!({
            "member": &*member.id,
            "instance": member.instance_id.as_deref(),
            "client": &*member.client_id,
            "host": &*member.host,
            "partitions": member.assignment.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    });
    let partitions = standings.iter().map(|(at, standing)| {
        serde_json::json!({
            "topic": &*at.topic,
            "partition": at.partition,
            "committed": standing.committed,
            "end": standing.end,
            "lag": standing.lag(),
            "member": standing.member.map(|member| name_of(&group.members[member])),
        })
    });
    serde_json::json!({
        "group": &*group.group,
        "state": group.state.as_str(),
        "type": group.group_type.as_str(),
        "assignor": &*group.assignor,
        "lag": total_lag(standings),
        "members": members.collect::<Vec<_>>(),
        "partitions": partitions.collect::<Vec<_>>(),
    })
}

fn print(group: &GroupDescription, standings: &BTreeMap<TopicPartition, Standing>) -> anyhow::Result<()> {
    let number = |number: Option<i64>| number.map_or("-".to_owned(), |number| number.to_string());
    let lag = number(total_lag(standings));
    let assignor = if group.assignor.is_empty() { String::new() } else { format!(" · {}", group.assignor) };
    line(format_args!(
        "{} · {} · {}{assignor} · {} · lag {lag}",
        group.group,
        group.state.as_str(),
        group.group_type.as_str(),
        counted(group.members.len() as u64, "member"),
    ))?;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER", "CLIENT", "HOST"]);
    for (at, standing) in standings {
        let member = standing.member.map(|member| &group.members[member]);
        table.add_row([
            at.topic.to_string(),
            at.partition.to_string(),
            number(standing.committed),
            number(standing.end),
            number(standing.lag()),
            member.map_or("-", name_of).to_owned(),
            member.map_or("-", |member| &member.client_id).to_owned(),
            member.map_or("-", |member| &member.host).to_owned(),
        ]);
    }
    for member in group.members.iter().filter(|member| member.assignment.is_empty()) {
        let own = [name_of(member), &member.client_id, &member.host].map(str::to_owned);
        table.add_row(["-"; 5].map(str::to_owned).into_iter().chain(own));
    }
    line(table)
}

async fn seek(target: &Target, args: SeekArgs, format: Format) -> anyhow::Result<()> {
    let usage = |error: String| failure(Exit::Usage, error);
    let range = OffsetRange::parse(&args.to, now_ms()).map_err(|error| usage(error.to_string()))?;
    if range.until.is_some() {
        return Err(usage(format!(
            "`{}` is from one place to another; a group goes on at one place",
            args.to
        )));
    }
    let is_share = match type_of(target, &args.group).await {
        None => args.share,
        Some(known) if args.share && known != GroupType::Share => {
            let reason =
                format!("`{}` is a group of the type {}: leave --share away", args.group, known.as_str());
            return Err(usage(reason));
        }
        Some(known) => known == GroupType::Share,
    };
    let partitions = sought(target, &args, is_share).await?;
    let admin = target.client().admin();
    let extents = Extents::of(admin.clone(), &partitions, Isolation::ReadUncommitted).await?;
    let mut offsets = Vec::new();
    for (partition, wanted) in extents.resolve(range.from).await? {
        let (start, end) = (extents.start(&partition).unwrap_or(0), extents.end(&partition).unwrap_or(0));
        let offset = wanted.clamp(start, end.max(start));
        if offset != wanted {
            tell(format_args!(
                "note: {partition} reaches from {start} to {end}: {offset} instead of {wanted}"
            ));
        }
        offsets.push((partition, Offset(offset)));
    }
    let moved = match args.dry_run {
        true => Ok(BTreeMap::new()),
        false => moved(target, &args.group, is_share, &offsets).await,
    };
    let mut moved = match moved {
        Ok(moved) => moved,
        Err(error) => return Err(not_moved(target, &args.group, error).await),
    };
    let mut results = Results::default();
    for (partition, offset) in &offsets {
        if let Some(Err(error)) = moved.remove(partition) {
            results.fail(not_moved(target, &args.group, error).await.context(partition.to_string()));
            continue;
        }
        match format {
            Format::Json => line(serde_json::json!({
                "group": args.group, "topic": &*partition.topic, "partition": partition.partition,
                "offset": offset.0, "committed": !args.dry_run,
            }))?,
            Format::Text if args.dry_run => line(format_args!("{partition} would go on at {offset}"))?,
            Format::Text => line(format_args!("{partition} goes on at {offset}"))?,
        }
    }
    results.finish()
}

/// Has the group go on there; what is refused of a single partition is told of that one.
async fn moved(
    target: &Target,
    group: &str,
    is_share: bool,
    offsets: &[(TopicPartition, Offset)],
) -> Result<BTreeMap<TopicPartition, Result<(), Error>>, Error> {
    let admin = target.client().admin();
    if is_share {
        return admin.alter_share_group_offsets(group, offsets).await;
    }
    let offsets: Vec<_> = offsets
        .iter()
        .map(|(partition, offset)| (partition.clone(), CommittedOffset::new(*offset)))
        .collect();
    admin.commit_offsets(group, &offsets).await.map(|()| BTreeMap::new())
}

/// Why a group stays where it is.
async fn not_moved(target: &Target, group: &str, error: Error) -> anyhow::Error {
    let has_members = matches!(error, Error::NotInGroup { .. })
        || matches!(
            error.code(),
            Some(ErrorCode::UnknownMemberId | ErrorCode::NonEmptyGroup | ErrorCode::StaleMemberEpoch)
        );
    if !has_members {
        return explained(target, group, error).await;
    }
    let reason = format!(
        "group `{group}` has members, which would go on where they are: stop them first. \
         `thalweg group describe {group}` shows them"
    );
    failure(Exit::Taken, reason)
}

/// The partitions that a seek is about.
async fn sought(target: &Target, args: &SeekArgs, is_share: bool) -> anyhow::Result<Vec<TopicPartition>> {
    let mut partitions = Vec::new();
    for topic in &args.topic {
        let count = target.partitions_of(topic).await?;
        partitions.extend((0..count).map(|partition| TopicPartition::new(topic.as_str(), partition)));
    }
    if args.topic.is_empty() {
        let group = &args.group;
        let read: Vec<TopicPartition> = match is_share {
            true => share::places(target, group).await?.into_keys().collect(),
            false => {
                target.client().admin().committed_offsets(group, None, false).await?.into_keys().collect()
            }
        };
        if read.is_empty() {
            let has = if is_share { "read" } else { "committed" };
            return Err(failure(
                Exit::NotFound,
                format!(
                    "group `{group}` has {has} nothing{}. Say in which topics it is to go on: --topic TOPIC",
                    near(target, group).await
                ),
            ));
        }
        partitions = existing(target, read.iter()).await?;
        partitions.sort();
    }
    let is_there = |wanted: &&i32| partitions.iter().any(|at| at.partition == **wanted);
    if let Some(missing) = args.partition.iter().find(|wanted| !is_there(wanted)) {
        return Err(failure(Exit::NotFound, format!("none of its topics has a partition {missing}")));
    }
    if !args.partition.is_empty() {
        partitions.retain(|at| args.partition.contains(&at.partition));
    }
    if partitions.is_empty() {
        return Err(failure(Exit::NotFound, "its topics are gone"));
    }
    Ok(partitions)
}

async fn delete(target: &Target, groups: &[String], yes: bool, format: Format) -> anyhow::Result<()> {
    let question = format!("Delete {} and what was committed there?", groups.join(", "));
    if !yes && !confirmed(&question)? {
        return nothing_deleted();
    }
    let names: Vec<&str> = groups.iter().map(String::as_str).collect();
    let mut results = Results::default();
    for (group, result) in target.client().admin().delete_groups(&names).await {
        match result {
            Ok(()) if format == Format::Json => {
                line(serde_json::json!({"group": &*group, "result": "deleted"}))?;
            }
            Ok(()) => line(format_args!("deleted {group}"))?,
            Err(error) => results.fail(explained(target, &group, error).await),
        }
    }
    results.finish()
}

async fn delete_offsets(
    target: &Target,
    groups: &[String],
    topics: &[String],
    yes: bool,
    format: Format,
) -> anyhow::Result<()> {
    let question = format!("Delete what {} has committed for {}?", groups.join(", "), topics.join(", "));
    if !yes && !confirmed(&question)? {
        return nothing_deleted();
    }
    let admin = target.client().admin();
    let mut results = Results::default();
    for group in groups {
        if type_of(target, group).await == Some(GroupType::Share) {
            share::forget(target, group, topics, format, &mut results).await?;
            continue;
        }
        // Of topics that are gone, too.
        let committed = admin.committed_offsets(group, None, false).await?;
        let mut partitions: Vec<TopicPartition> = committed.into_keys().collect();
        partitions.retain(|at| topics.iter().any(|topic| at.topic == *topic));
        partitions.sort();
        if partitions.is_empty() {
            let nothing = format!("group `{group}` has committed nothing for {}", topics.join(", "));
            results.fail(failure(Exit::NotFound, nothing));
            continue;
        }
        match admin.delete_offsets(group, &partitions).await {
            Err(error) => results.fail(explained(target, group, error).await),
            Ok(deleted) => {
                for (partition, result) in deleted {
                    match result {
                        Ok(()) if format == Format::Json => line(serde_json::json!({
                            "group": group, "topic": &*partition.topic, "partition": partition.partition, "result": "deleted",
                        }))?,
                        Ok(()) => line(format_args!("{group} has forgotten {partition}"))?,
                        Err(error) => results.fail(explained(target, group, error).await),
                    }
                }
            }
        }
    }
    results.finish()
}

/// Why something could not be done with a group, and what to do about it.
async fn explained(target: &Target, group: &str, error: Error) -> anyhow::Error {
    match error.code() {
        Some(ErrorCode::GroupIdNotFound) => failure(
            Exit::NotFound,
            format!(
                "there is no group `{group}`{}. `thalweg group list` shows them all",
                near(target, group).await
            ),
        ),
        Some(ErrorCode::NonEmptyGroup) => failure(
            Exit::Taken,
            format!(
                "group `{group}` has members: stop them first. `thalweg group describe {group}` shows them"
            ),
        ),
        Some(ErrorCode::GroupSubscribedToTopic) => failure(
            Exit::Taken,
            format!(
                "members of group `{group}` read that topic: stop them first. `thalweg group describe {group}` shows them"
            ),
        ),
        _ => anyhow::Error::new(error).context(format!("group `{group}`")),
    }
}

/// All groups, as far as they are told.
async fn known(target: &Target) -> Vec<ListedGroup> {
    let listed = target.client().admin().list_groups(&GroupFilter::default()).await;
    listed.map(|listing| listing.found).unwrap_or_default()
}

/// The type of a group, if it is listed and brokers say it.
async fn type_of(target: &Target, group: &str) -> Option<GroupType> {
    known(target).await.into_iter().find(|listed| listed.group == group)?.group_type
}

/// The name that was probably meant.
async fn near(target: &Target, group: &str) -> String {
    let groups = known(target).await;
    did_you_mean(group, groups.iter().map(|listed| &*listed.group).filter(|known| *known != group))
}
