//! Writes the messages as Rust: which file holds what. The layout is left to rustfmt.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::schema::{Kind, Message, Struct, Versions};
use super::structure::{Writer, snake};

const HEADER: &str = "// Generated from messages.txt by generate/main.rs; do not edit.\n\n";

/// The files below `src/messages/`, by name.
pub fn files(messages: &[Message]) -> BTreeMap<String, String> {
    let mut apis: BTreeMap<i16, [Option<&Message>; 2]> = BTreeMap::new();
    let mut records: BTreeMap<String, Vec<&Message>> = BTreeMap::new();
    for message in messages {
        match message.kind {
            Kind::Request => apis.entry(api_key(message)).or_default()[0] = Some(message),
            Kind::Response => apis.entry(api_key(message)).or_default()[1] = Some(message),
            Kind::Key | Kind::Value => records.entry(record_module(&message.name)).or_default().push(message),
        }
    }
    let apis: Vec<(i16, &Message, &Message)> = apis
        .into_iter()
        .map(|(key, [request, response])| match (request, response) {
            (Some(request), Some(response)) => (key, request, response),
            _ => panic!("API {key} lacks its request or response"),
        })
        .collect();
    let mut files = BTreeMap::new();
    for (_, request, response) in &apis {
        let file = file(&[*request, *response], &format!("The API {}.", request.api()), "");
        files.insert(format!("{}.rs", snake(request.api())), file);
    }
    for (module, messages) in &records {
        let valued = messages.iter().any(|message| message.kind == Kind::Value);
        let imports = if valued { RECORD_IMPORTS } else { "" };
        let file = file(messages, &format!("The internal records {}.", list(messages)), imports);
        files.insert(format!("records/{module}.rs"), file);
    }
    files.insert("mod.rs".to_owned(), api_table(&apis));
    files.insert("records/mod.rs".to_owned(), record_table(&records));
    files
}

const RECORD_IMPORTS: &str = "use std::ops::RangeInclusive;\n\n";

fn api_key(message: &Message) -> i16 {
    message.key.expect("a request has a key")
}

/// The key and the value of a record share a module, and so do the two messages of the consumer protocol.
fn record_module(name: &str) -> String {
    match name {
        "ConsumerProtocolAssignment" | "ConsumerProtocolSubscription" => "consumer_protocol".to_owned(),
        "ControlRecordTypeSchema" | "EndTxnMarker" => "control_record".to_owned(),
        _ => snake(name.trim_end_matches("Key").trim_end_matches("Value")),
    }
}

fn list(messages: &[&Message]) -> String {
    messages.iter().map(|message| format!("`{}`", message.name)).collect::<Vec<_>>().join(" and ")
}

fn api_table(apis: &[(i16, &Message, &Message)]) -> String {
    let mut code = HEADER.to_owned();
    code.push_str(
        "//! The messages of the protocol: one module for each API that brokers serve to clients, and\n",
    );
    code.push_str("//! [`records`] for what Kafka keeps in its internal topics.\n");
    code.push_str("//!\n//! Fields that a version lacks have their default after decoding. Encoding refuses to drop a\n");
    code.push_str("//! field that has another value, unless Kafka calls it ignorable.\n\n");
    code.push_str("mod api;\npub mod records;\n\n");
    let modules: BTreeSet<String> = apis.iter().map(|(_, request, _)| snake(request.api())).collect();
    for module in modules {
        writeln!(code, "pub mod {module};").expect("a string takes all");
    }
    code.push_str("\nuse std::fmt;\nuse std::ops::RangeInclusive;\n\npub use api::{Api, UnknownApi, WrongResponse};\n\n");
    code.push_str(
        "use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, NEVER, Wire};\n\napi::apis! {\n",
    );
    for (key, request, response) in apis {
        let Versions { first, last } = request.versions;
        assert_eq!(request.versions, response.versions, "{}", request.name);
        assert_eq!(request.flexible, response.flexible, "{}", request.name);
        let stable = if request.last_version_unstable { last - 1 } else { last };
        writeln!(
            code,
            "    {api} = {key}, {module}::{{{}, {}}},\n        versions {first}..={last}, stable {stable}, flexible {};",
            request.name,
            response.name,
            flexible_from(request),
            api = request.api(),
            module = snake(request.api()),
        )
        .expect("a string takes all");
    }
    code.push_str("}\n");
    code
}

fn record_table(records: &BTreeMap<String, Vec<&Message>>) -> String {
    let mut code = HEADER.to_owned();
    code.push_str(
        "//! What Kafka keeps in its internal topics and files, and what clients hide in opaque bytes.\n",
    );
    code.push_str(
        "//!\n//! Every record begins with two bytes: the version of a value, or the kind of a key.\n\n",
    );
    for module in records.keys() {
        writeln!(code, "mod {module};").expect("a string takes all");
    }
    code.push('\n');
    for (module, messages) in records {
        let names: BTreeSet<&str> =
            messages.iter().flat_map(|m| &m.structs).map(|s| s.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        match names.as_slice() {
            [name] => writeln!(code, "pub use {module}::{name};"),
            names => writeln!(code, "pub use {module}::{{{}}};", names.join(", ")),
        }
        .expect("a string takes all");
    }
    code
}

fn flexible_from(message: &Message) -> String {
    if message.flexible.is_empty() { "NEVER".to_owned() } else { message.flexible.first.to_string() }
}

fn file(messages: &[&Message], title: &str, imports: &str) -> String {
    let mut body = String::new();
    // The structures so far by name, without their documentation.
    let mut written: BTreeMap<String, String> = BTreeMap::new();
    for message in messages {
        let writer = Writer { message, names: names(message, &written) };
        for s in &message.structs {
            let name = &writer.names[&s.name];
            let code = writer.structure(s);
            if written.contains_key(name) {
                continue;
            }
            writeln!(body, "\n/// {}\n{code}", writer.about(s)).expect("a string takes all");
            written.insert(name.clone(), code);
        }
        if matches!(message.kind, Kind::Key | Kind::Value) {
            record(message, &mut body);
        }
    }
    let mut code = format!("{HEADER}//! {title}\n\n{imports}");
    if body.contains("Bytes") && (body.contains(": Bytes") || body.contains("<Bytes>")) {
        code.push_str("use bytes::Bytes;\n");
    }
    if body.contains("ByteString") {
        code.push_str("use bytestring::ByteString;\n");
    }
    code.push('\n');
    let mut codec = vec!["DecodeError", "Decoder", "EncodeError", "Encoder"];
    codec.extend(["NEVER", "Trailing"].iter().filter(|name| body.contains(*name)));
    codec.push("Wire");
    for name in ["decode_key", "decode_versioned", "encode_key", "encode_versioned"] {
        if body.contains(&format!("{name}(")) {
            codec.push(name);
        }
    }
    let mut uses = vec![format!("use crate::codec::{{{}}};", codec.join(", "))];
    let types: Vec<&str> = ["Records", "Uuid"]
        .into_iter()
        .filter(|ty| body.contains(&format!(": {ty}")) || body.contains(&format!("<{ty}>")))
        .collect();
    match types.as_slice() {
        [] => {}
        [ty] => uses.insert(0, format!("use crate::{ty};")),
        types => uses.push(format!("use crate::{{{}}};", types.join(", "))),
    }
    code.push_str(&uses.join("\n"));
    code.push('\n');
    code + &body
}

/// The Rust names of a message's structures. A response's structure that has the name of one of the request's
/// is the same one if it reads the same, else it gets a name of its own.
fn names(message: &Message, written: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let names = message.structs.iter().map(|s| (s.name.clone(), s.name.clone())).collect();
    let mut writer = Writer { message, names };
    loop {
        // A new name changes the structures that use it, so that they may need new names themselves.
        let differs = |s: &&Struct| {
            let other = written.get(&writer.names[&s.name]);
            other.is_some_and(|other| *other != writer.structure(s))
        };
        let Some(s) = message.structs.iter().find(differs) else {
            return writer.names;
        };
        assert_eq!(message.kind, Kind::Response, "{}: two structures {}", message.name, s.name);
        writer.names.insert(s.name.clone(), format!("Response{}", s.name));
    }
}

/// The entry points of an internal record.
fn record(message: &Message, out: &mut String) {
    let name = &message.name;
    let Versions { first, last } = message.versions;
    let code = if message.kind == Kind::Key {
        let kind = message.key.expect("a key has a number");
        assert_eq!((first, last, message.flexible), (0, 0, Versions::NONE), "{name}");
        format!(
            "impl {name} {{
                /// What the key begins with.
                pub const KIND: i16 = {kind};

                /// Writes the key after its kind.
                ///
                /// # Errors
                /// Fails when a string is too long.
                pub fn to_bytes(&self) -> Result<Bytes, EncodeError> {{
                    encode_key(self, Self::KIND)
                }}

                /// Reads a key that begins with its kind.
                ///
                /// # Errors
                /// Fails when the key is of another kind, or malformed.
                pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {{
                    decode_key(bytes, Self::KIND)
                }}
            }}"
        )
    } else {
        let flexible = flexible_from(message);
        let trailing = if name.starts_with("ConsumerProtocol") { "Ignored" } else { "Refused" };
        format!(
            "impl {name} {{
                /// The versions that can be written and read.
                pub const VERSIONS: RangeInclusive<i16> = {first}..={last};

                /// Writes the record in `version`, which comes first.
                ///
                /// # Errors
                /// Fails when the version is unknown, or cannot carry what the record says.
                pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {{
                    encode_versioned(self, \"{name}\", version, Self::VERSIONS, {flexible})
                }}

                /// Reads a record that begins with its version.
                ///
                /// # Errors
                /// Fails when the version is unknown, or the record malformed.
                pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {{
                    decode_versioned(bytes, Self::VERSIONS, {flexible}, Trailing::{trailing})
                }}
            }}"
        )
    };
    writeln!(out, "\n{code}").expect("a string takes all");
}
