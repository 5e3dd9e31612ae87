//! Which name was probably meant.

/// The candidate that is spelt most like `name`, if one is close.
pub(crate) fn similar<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// How many characters must be inserted, deleted or replaced (Levenshtein), case apart.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, ours) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, theirs) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ours != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let topics = ["flights", "carriers", "daily"];
        assert_eq!(similar("flihgts", topics).as_deref(), Some("flights"));
        assert_eq!(similar("Carrier", topics).as_deref(), Some("carriers"));
        assert_eq!(similar("orders", topics), None);
    }
}
