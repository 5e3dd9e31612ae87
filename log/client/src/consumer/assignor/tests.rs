use super::*;

fn member(id: &str, topics: &[&str], owned: &[(&str, i32)], generation: i32) -> GroupMember {
    GroupMember {
        id: ByteString::from(id),
        topics: topics.iter().map(|topic| ByteString::from(*topic)).collect(),
        owned: owned.iter().map(|(topic, partition)| TopicPartition::new(*topic, *partition)).collect(),
        generation,
        ..GroupMember::default()
    }
}

fn topics(counts: &[(&str, i32)]) -> BTreeMap<ByteString, i32> {
    counts.iter().map(|(topic, count)| (ByteString::from(*topic), *count)).collect()
}

/// Writes an assignment as `member: topic-partition …`, members in order.
fn check(assignor: &dyn Assignor, counts: &[(&str, i32)], members: &[GroupMember], expected: &[&str]) {
    let assignments = assignor.assign(&topics(counts), members).expect("an assignment");
    let shown: Vec<String> = assignments
        .iter()
        .filter(|(_, assignment)| !assignment.partitions.is_empty())
        .map(|(id, assignment)| {
            let mut partitions = assignment.partitions.clone();
            partitions.sort();
            let partitions: Vec<String> = partitions.iter().map(TopicPartition::to_string).collect();
            format!("{id}: {}", partitions.join(" "))
        })
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn range_gives_the_first_members_one_more() {
    let members =
        [member("b", &["t", "u"], &[], -1), member("a", &["t", "u"], &[], -1), member("c", &["u"], &[], -1)];
    check(&Range, &[("t", 3), ("u", 5)], &members, &["a: t-0 t-1 u-0 u-1", "b: t-2 u-2 u-3", "c: u-4"]);
}

#[test]
fn range_orders_static_members_by_their_instance() {
    let mut first = member("z", &["t"], &[], -1);
    first.instance_id = Some(ByteString::from_static("1"));
    let mut second = member("a", &["t"], &[], -1);
    second.instance_id = Some(ByteString::from_static("2"));
    check(&Range, &[("t", 3)], &[second, first], &["a: t-2", "z: t-0 t-1"]);
}

#[test]
fn round_robin_deals_in_turn() {
    let members = [member("a", &["t", "u"], &[], -1), member("b", &["t"], &[], -1)];
    check(&RoundRobin, &[("t", 3), ("u", 2)], &members, &["a: t-0 t-2 u-0 u-1", "b: t-1"]);
    check(&RoundRobin, &[("v", 3)], &members, &[]);
}

#[test]
fn sticky_takes_only_what_must_move_and_gives_it_in_the_next_round() {
    let counts = [("t", 4)];
    let alone = [member("a", &["t"], &[], -1)];
    check(&CooperativeSticky, &counts, &alone, &["a: t-0 t-1 t-2 t-3"]);
    let all = [("t", 0), ("t", 1), ("t", 2), ("t", 3)];
    let joined = [member("a", &["t"], &all, 1), member("b", &["t"], &[], -1)];
    check(&CooperativeSticky, &counts, &joined, &["a: t-0 t-1"]);
    let revoked = [member("a", &["t"], &all[..2], 2), member("b", &["t"], &[], 2)];
    check(&CooperativeSticky, &counts, &revoked, &["a: t-0 t-1", "b: t-2 t-3"]);
    let left = [member("b", &["t"], &all[2..], 3)];
    check(&CooperativeSticky, &counts, &left, &["b: t-0 t-1 t-2 t-3"]);
}

#[test]
fn sticky_believes_the_younger_generation_and_only_what_exists() {
    let members = [
        member("a", &["t"], &[("t", 0), ("t", 1), ("t", 9)], 3),
        member("b", &["t"], &[("t", 0), ("t", 1), ("gone", 0)], 5),
    ];
    check(&CooperativeSticky, &[("t", 2)], &members, &["b: t-0"]);
    let equals = [member("a", &["t"], &[("t", 0)], 3), member("b", &["t"], &[("t", 0)], 3)];
    check(&CooperativeSticky, &[("t", 1)], &equals, &["a: t-0"]);
}

#[test]
fn sticky_balances_members_with_different_topics() {
    let members =
        [member("a", &["t", "u"], &[], -1), member("b", &["t"], &[], -1), member("c", &["u"], &[], -1)];
    check(&CooperativeSticky, &[("t", 3), ("u", 3)], &members, &["a: t-0 u-2", "b: t-1 t-2", "c: u-0 u-1"]);
}

proptest::proptest! {
    /// Whatever was owned before: no partition twice, none while another owns it; and after the second round
    /// all are given and the counts differ by one at most.
    #[test]
    fn sticky_settles_in_two_rounds(
        partitions in 1..40_i32,
        owned in proptest::collection::vec((0..6_usize, 0..45_i32, 0..3_i32), 0..60),
        count in 1..6_usize,
    ) {
        let names = ["a", "b", "c", "d", "e", "f"];
        let mut members: Vec<GroupMember> = (0..count).map(|at| member(names[at], &["t"], &[], 1)).collect();
        for (at, partition, generation) in owned {
            if let Some(member) = members.get_mut(at) {
                member.owned.push(TopicPartition::new("t", partition));
                member.generation = generation;
            }
        }
        let counts = topics(&[("t", partitions)]);
        for generation in 10..13 {
            let assignments = CooperativeSticky.assign(&counts, &members).expect("an assignment");
            let mut seen = std::collections::HashSet::new();
            for member in &mut members {
                member.owned = assignments[&member.id].partitions.clone();
                member.generation = generation;
                for partition in &member.owned {
                    proptest::prop_assert!(seen.insert(partition.clone()), "{partition} is given twice");
                }
            }
            if generation == 12 {
                proptest::prop_assert_eq!(seen.len(), partitions as usize);
                let sizes: Vec<usize> = members.iter().map(|member| member.owned.len()).collect();
                let (most, fewest) = (sizes.iter().max().unwrap_or(&0), sizes.iter().min().unwrap_or(&0));
                proptest::prop_assert!(most - fewest <= 1);
            }
        }
    }
}
