//! Writes `src/messages/` from `messages.txt`: `cargo run -p thalweg-protocol --example generate`.

mod rust;
mod schema;
mod structure;

use std::path::Path;
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("messages.txt")).expect("messages.txt is there");
    let directory = root.join("src/messages");
    std::fs::create_dir_all(directory.join("records")).expect("the directory can be written");
    let mut paths = Vec::new();
    for (name, code) in rust::files(&schema::parse(&text)) {
        let path = directory.join(name);
        std::fs::write(&path, code).expect("the file can be written");
        paths.push(path);
    }
    let formatted = Command::new("rustfmt").arg("--edition=2024").args(&paths).status();
    assert!(formatted.is_ok_and(|status| status.success()), "rustfmt formats the generated files");
    println!("{} files in {}", paths.len(), directory.display());
}
