//! What to type next: near names for a name that does not exist.

use thalweg_sql::similar;

/// ` (did you mean …?)` for the closest of `candidates`, or nothing when none is close.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    similar(name, candidates).map(|candidate| format!(" (did you mean `{candidate}`?)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_offered_and_a_far_one_is_not() {
        let topics = ["flights", "carriers", "daily"];
        assert_eq!(did_you_mean("flihgts", topics), " (did you mean `flights`?)");
        assert_eq!(did_you_mean("Carrier", topics), " (did you mean `carriers`?)");
        assert_eq!(did_you_mean("orders", topics), "");
    }
}
