//! Reads `messages.txt`: the messages with their fields, types, versions and defaults.

use std::collections::BTreeMap;

/// A range of versions, both ends included; empty when `first > last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub first: i16,
    pub last: i16,
}

impl Versions {
    pub const NONE: Self = Self { first: 0, last: -1 };

    /// Reads `none`, `3`, `3+` or `3-5`.
    fn parse(text: &str) -> Self {
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("versions {text}"));
        if text == "none" {
            Self::NONE
        } else if let Some(first) = text.strip_suffix('+') {
            Self { first: number(first), last: i16::MAX }
        } else if let Some((first, last)) = text.split_once('-') {
            Self { first: number(first), last: number(last) }
        } else {
            Self { first: number(text), last: number(text) }
        }
    }

    pub fn is_empty(self) -> bool {
        self.first > self.last
    }

    pub fn contains(self, version: i16) -> bool {
        self.first <= version && version <= self.last
    }

    pub fn intersect(self, other: Self) -> Self {
        let both = Self { first: self.first.max(other.first), last: self.last.min(other.last) };
        if both.is_empty() { Self::NONE } else { both }
    }

    /// The smallest range that holds both.
    pub fn hull(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Self { first: self.first.min(other.first), last: self.last.max(other.last) },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Uuid,
    String,
    Bytes,
    Records,
    Array(Box<Type>),
    Struct(String),
}

impl Type {
    fn parse(text: &str) -> Self {
        match text {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "uint16" => Self::Uint16,
            "int32" => Self::Int32,
            "uint32" => Self::Uint32,
            "int64" => Self::Int64,
            "float64" => Self::Float64,
            "uuid" => Self::Uuid,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "records" => Self::Records,
            _ => match text.strip_prefix("[]") {
                Some(element) => Self::Array(Box::new(Self::parse(element))),
                None => Self::Struct(text.to_owned()),
            },
        }
    }

    /// The structure that this is, or that this is an array of.
    pub fn structure(&self) -> Option<&str> {
        match self {
            Self::Struct(name) => Some(name),
            Self::Array(element) => element.structure(),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub ty: Type,
    pub versions: Versions,
    pub nullable: Versions,
    pub tag: Option<u32>,
    /// As it stands in the file; `None` where the file gives none.
    pub default: Option<String>,
    pub ignorable: bool,
}

impl Field {
    /// Whether the default is null.
    pub fn null_by_default(&self) -> bool {
        self.ty == Type::Records
            || self.default.as_deref().is_some_and(|d| d.eq_ignore_ascii_case("null") || d == "None")
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    pub name: String,
    /// The versions of the message in which the structure occurs.
    pub versions: Versions,
    pub fields: Vec<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request,
    Response,
    /// The key of an internal record, after its `key` number.
    Key,
    /// The value of an internal record, after its version.
    Value,
}

#[derive(Clone, Debug)]
pub struct Message {
    pub kind: Kind,
    pub name: String,
    pub key: Option<i16>,
    pub versions: Versions,
    pub flexible: Versions,
    pub last_version_unstable: bool,
    /// The message itself first, then its structures in the order of their first use.
    pub structs: Vec<Struct>,
}

impl Message {
    pub fn structure(&self, name: &str) -> &Struct {
        self.structs
            .iter()
            .find(|s| s.name == name)
            .unwrap_or_else(|| panic!("{}: no structure {name}", self.name))
    }

    /// The name without `Request` or `Response`.
    pub fn api(&self) -> &str {
        self.name.trim_end_matches("Request").trim_end_matches("Response")
    }
}

/// A line of the file with the lines indented below it.
struct Node<'a> {
    words: Vec<&'a str>,
    children: Vec<Node<'a>>,
}

/// Reads the whole file. Panics where it is not what it should be: it is part of the source.
pub fn parse(text: &str) -> Vec<Message> {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| ((line.len() - line.trim_start().len()) / 2, line.trim()))
        .collect();
    let mut at = 0;
    nodes(&lines, &mut at, 0).iter().map(message).collect()
}

fn nodes<'a>(lines: &[(usize, &'a str)], at: &mut usize, depth: usize) -> Vec<Node<'a>> {
    let mut nodes = Vec::new();
    while let Some(&(indent, line)) = lines.get(*at) {
        if indent < depth {
            break;
        }
        assert_eq!(indent, depth, "indentation of {line}");
        *at += 1;
        let children = self::nodes(lines, at, depth + 1);
        nodes.push(Node { words: line.split(' ').collect(), children });
    }
    nodes
}

fn attribute<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn message(node: &Node<'_>) -> Message {
    let words = &node.words;
    let kind = match words[0] {
        "request" => Kind::Request,
        "response" => Kind::Response,
        "coordinator-key" => Kind::Key,
        "coordinator-value" | "data" => Kind::Value,
        other => panic!("a {other}"),
    };
    let name = words[1].to_owned();
    let versions = Versions::parse(attribute(words, "versions").expect("a message has versions"));
    let mut fields_of = BTreeMap::new();
    let fields = fields(node, &mut fields_of);
    let mut message = Message {
        kind,
        key: attribute(words, "key").map(|key| key.parse().expect("a key is a number")),
        versions,
        flexible: Versions::parse(attribute(words, "flexible").expect("a message says what is flexible")),
        last_version_unstable: words.contains(&"latestVersionUnstable"),
        structs: Vec::new(),
        name,
    };
    let name = message.name.clone();
    add_struct(&mut message, &name, versions, &fields, &fields_of);
    for s in &mut message.structs {
        s.fields.retain_mut(|field| {
            field.versions = field.versions.intersect(s.versions);
            field.nullable = field.nullable.intersect(field.versions);
            !field.versions.is_empty()
        });
    }
    message
}

/// Adds a structure and those it holds, or widens the versions of those that are there already.
fn add_struct(
    message: &mut Message,
    name: &str,
    versions: Versions,
    fields: &[Field],
    fields_of: &BTreeMap<String, Vec<Field>>,
) {
    match message.structs.iter_mut().find(|s| s.name == name) {
        Some(s) => s.versions = s.versions.hull(versions),
        None => message.structs.push(Struct { name: name.to_owned(), versions, fields: fields.to_vec() }),
    }
    for field in fields {
        let versions = field.versions.intersect(versions);
        if let (Some(inner), false) = (field.ty.structure(), versions.is_empty()) {
            let fields = fields_of.get(inner).unwrap_or_else(|| panic!("{name}: no structure {inner}"));
            add_struct(message, inner, versions, fields, fields_of);
        }
    }
}

/// The fields below a line; the structures defined there go into `fields_of`.
fn fields(node: &Node<'_>, fields_of: &mut BTreeMap<String, Vec<Field>>) -> Vec<Field> {
    let mut own = Vec::new();
    for child in &node.children {
        if child.words[0] == "struct" {
            let inner = fields(child, fields_of);
            fields_of.insert(child.words[1].to_owned(), inner);
            continue;
        }
        let field = field(&child.words);
        if !child.children.is_empty() {
            let name = field.ty.structure().expect("only structures have fields").to_owned();
            let inner = fields(child, fields_of);
            fields_of.insert(name, inner);
        }
        own.push(field);
    }
    own
}

fn field(words: &[&str]) -> Field {
    let tag = attribute(words, "tag").map(|tag| tag.split_once(':').expect("a tag has versions"));
    let tagged = tag.map(|(_, versions)| Versions::parse(versions));
    // A field that is always tagged may leave out the versions in which it exists.
    let versions = match words[2] {
        "" => tagged.expect("a field has versions"),
        versions => Versions::parse(versions),
    };
    if let Some(tagged) = tagged {
        assert_eq!(tagged, versions, "{}: tagged in some versions only", words[0]);
    }
    Field {
        name: words[0].to_owned(),
        ty: Type::parse(words[1]),
        versions,
        nullable: attribute(words, "null").map_or(Versions::NONE, Versions::parse),
        tag: tag.map(|(tag, _)| tag.parse().expect("a tag is a number")),
        default: attribute(words, "default").map(str::to_owned),
        ignorable: words.contains(&"ignorable"),
    }
}
