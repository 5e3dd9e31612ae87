use std::collections::BTreeSet;
use std::path::Path;

use super::{rust, schema, structure};

pub const MESSAGES: &str = include_str!("../../../messages.txt");

/// What rustfmt leaves alone: it adds and removes space, trailing commas and the braces around an expression.
fn without_layout(code: &str) -> String {
    code.chars().filter(|c| !c.is_whitespace() && !",{}".contains(*c)).collect()
}

fn rust_files(directory: &Path, prefix: &str) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(directory).expect("the directory is there") {
        let entry = entry.expect("its entries can be read");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files.extend(rust_files(&entry.path(), &format!("{name}/")));
        } else {
            files.insert(name);
        }
    }
    files
}

#[test]
fn the_code_checked_in_is_what_the_generator_writes() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/messages");
    let files = rust::files(&schema::parse(MESSAGES));
    for (name, code) in &files {
        let found = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
        assert!(
            without_layout(&found) == without_layout(code),
            "{name} is out of date: cargo run -p thalweg-protocol --example generate"
        );
    }
    let mut expected: BTreeSet<String> = files.into_keys().collect();
    expected.insert("api.rs".to_owned());
    assert_eq!(rust_files(&directory, ""), expected);
}

#[test]
fn names_become_snake_case() {
    for (name, snake) in [
        ("TopicData", "topic_data"),
        ("ApiVersions", "api_versions"),
        ("protocolType", "protocol_type"),
        ("IsrNodes", "isr_nodes"),
        ("ISR", "isr"),
        ("KRaftVersion", "k_raft_version"),
        ("ErrorCode2", "error_code2"),
    ] {
        assert_eq!(structure::snake(name), snake);
    }
}
