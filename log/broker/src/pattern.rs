//! Regular expressions that clients send: the whole of a name has to match.

use thalweg_protocol::ErrorCode;

use crate::error::Refusal;

/// The most bytes that a compiled pattern may have: a short one can ask for a huge machine.
const COMPILED_LIMIT: usize = 1 << 20;

/// A pattern that takes time linear in the length of what it is matched with.
#[derive(Debug)]
pub(crate) struct Pattern(regex::Regex);

impl Pattern {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// INVALID_REGULAR_EXPRESSION, with what is wrong about it.
    pub(crate) fn compile(pattern: &str) -> Result<Self, Refusal> {
        let compile = |pattern: &str| regex::RegexBuilder::new(pattern).size_limit(COMPILED_LIMIT).build();
        // By itself first: its brackets are to match each other, not those around it.
        let compiled = compile(pattern).and_then(|_| compile(&format!("^(?:{pattern})$")));
        compiled.map(Self).map_err(|error| {
            let message = format!("the pattern {pattern:?} cannot be used: {error}");
            Refusal::new(ErrorCode::InvalidRegularExpression, message)
        })
    }

    /// Whether all of `name` matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_name_has_to_match() {
        for (pattern, name, expected) in [
            ("orders", "orders", true),
            ("orders", "orders-2", false),
            ("orders|sales", "sales", true),
            ("orders|sales", "sales2", false),
            ("orders.*", "orders.eu", true),
            ("", "orders", false),
            ("", "", true),
        ] {
            let pattern = Pattern::compile(pattern).expect("it can be used");
            assert_eq!(pattern.matches(name), expected, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for pattern in ["(", "a)(b", "[", "(?=a)", r"(a)\1", "a{1000}{1000}{1000}"] {
            let refusal = Pattern::compile(pattern).expect_err(pattern);
            assert_eq!(refusal.code, ErrorCode::InvalidRegularExpression, "{pattern}");
        }
    }
}
