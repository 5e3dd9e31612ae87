//! Holds the rules of the house that a machine can check: crate edges, file sizes, names, leftovers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The edges that may exist between the crates, transitively closed by hand where a crate may reach further.
/// `cli`, `examples` and `tests` see all, and nobody may depend on them.
const EDGES: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("storage", &["protocol"]),
    ("controller", &["protocol"]),
    ("broker", &["protocol", "storage", "controller"]),
    ("client", &["protocol"]),
    ("streams", &["client", "protocol"]),
    ("connectors", &[]),
    ("sql", &["streams", "client", "protocol", "connectors"]),
];

/// Dependencies that a crate must not link, however indirectly, with its default features.
const ABSENT: &[(&str, &[&str])] = &[
    ("protocol", &["tokio", "rocksdb", "datafusion", "arrow"]),
    ("storage", &["tokio", "rocksdb", "datafusion", "arrow"]),
    ("controller", &["tokio", "rocksdb", "datafusion", "arrow"]),
    ("broker", &["rocksdb", "datafusion", "arrow"]),
    ("client", &["rocksdb", "datafusion", "arrow"]),
    ("streams", &["datafusion", "arrow"]),
    ("connectors", &["rocksdb", "datafusion"]),
];

const BANNED_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc", "types"];
const MOST_PRODUCTION_LINES: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_path_buf()
}

struct Graph {
    /// Package name → names of its normal and build dependencies.
    edges: BTreeMap<String, BTreeSet<String>>,
}

/// The platform that Rust builds for here.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let said = String::from_utf8(output.stdout).expect("rustc prints text");
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc names its host").to_owned()
}

impl Graph {
    fn read() -> Self {
        // Only what this platform builds was fetched.
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform", &host()])
            .current_dir(root())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
        let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
        let names: BTreeMap<String, String> =
            list(&metadata["packages"]).iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"]) {
            let from = edges.entry(names[&text(&node["id"])].clone()).or_default();
            for dep in list(&node["deps"]) {
                if list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev") {
                    from.insert(names[&text(&dep["pkg"])].clone());
                }
            }
        }
        Self { edges }
    }

    fn reachable(&self, from: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut todo = vec![from.to_string()];
        while let Some(name) = todo.pop() {
            for next in self.edges.get(&name).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    todo.push(next.clone());
                }
            }
        }
        seen
    }
}

#[test]
fn crates_have_only_the_edges_that_the_architecture_names() {
    let graph = Graph::read();
    let mut checked = 0;
    for (name, allowed) in EDGES {
        let allowed: BTreeSet<String> = allowed.iter().map(|edge| format!("thalweg-{edge}")).collect();
        for edge in graph.edges[&format!("thalweg-{name}")].iter().filter(|edge| edge.starts_with("thalweg-"))
        {
            assert!(
                allowed.contains(edge),
                "thalweg-{name} depends on {edge}, which ARCHITECTURE.md does not allow"
            );
            checked += 1;
        }
    }
    assert!(checked >= 8, "the graph was not read: only {checked} edges were found");
    for (from, edges) in &graph.edges {
        if !["thalweg-tests", "thalweg-examples", "thalweg-cli"].contains(&from.as_str()) {
            for top in ["thalweg-cli", "thalweg-examples", "thalweg-tests"] {
                assert!(!edges.contains(top), "{from} depends on {top}");
            }
        }
    }
}

#[test]
fn light_crates_do_not_link_heavy_ones() {
    let graph = Graph::read();
    for (name, absent) in ABSENT {
        let reached = graph.reachable(&format!("thalweg-{name}"));
        for heavy in *absent {
            assert!(!reached.contains(*heavy), "thalweg-{name} links {heavy}");
        }
    }
    for (name, heavy) in [("sql", "datafusion"), ("streams", "rocksdb")] {
        assert!(graph.reachable(&format!("thalweg-{name}")).contains(heavy), "the graph is incomplete");
    }
}

/// Every Rust file that git tracks or would track.
fn sources() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])
        .current_dir(root())
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files: Vec<PathBuf> = String::from_utf8(output.stdout)
        .expect("paths are UTF-8")
        .lines()
        .map(PathBuf::from)
        .filter(|path| root().join(path).is_file())
        .collect();
    assert!(files.len() > 50, "only {} sources were found", files.len());
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).expect("a tracked source can be read")
}

fn is_test(path: &Path) -> bool {
    path.components()
        .any(|part| ["tests", "it", "testing"].contains(&part.as_os_str().to_string_lossy().as_ref()))
        || path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
}

fn is_generated(path: &Path) -> bool {
    path.starts_with("log/protocol/src/messages")
}

#[test]
fn files_are_small_enough_to_hold_one_thing() {
    let mut long = Vec::new();
    for path in sources() {
        if is_test(&path) || is_generated(&path) {
            continue;
        }
        let text = read(&path);
        let production = text.split("#[cfg(test)]\nmod ").next().unwrap_or(&text);
        let lines = production.lines().count();
        if lines > MOST_PRODUCTION_LINES {
            long.push(format!("{} has {lines} lines", path.display()));
        }
    }
    assert!(
        long.is_empty(),
        "more than {MOST_PRODUCTION_LINES} lines of production code:\n{}",
        long.join("\n")
    );
}

#[test]
fn names_say_what_is_inside() {
    for path in sources() {
        for part in path.components() {
            let name =
                Path::new(part.as_os_str()).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            assert!(!BANNED_NAMES.contains(&name.as_str()), "{} is named for nothing", path.display());
        }
    }
}

#[test]
fn nothing_unfinished_is_left_behind() {
    // Spelled in halves, so that this file does not find itself.
    let marks = [
        concat!("to", "do!("),
        concat!("unimpl", "emented!("),
        concat!("db", "g!("),
        concat!("#[ig", "nore"),
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
    ];
    let mut found = Vec::new();
    for path in sources() {
        for (number, line) in read(&path).lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark)) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
