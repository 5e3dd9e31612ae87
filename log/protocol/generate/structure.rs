//! Writes one structure: its definition, its defaults, and how it is decoded and encoded.

use std::collections::BTreeMap;

use super::schema::{Field, Kind, Message, Struct, Type, Versions};

/// Writes the structures of one message.
pub struct Writer<'a> {
    pub message: &'a Message,
    /// The names of the structures in Rust by their names in the schema.
    pub names: BTreeMap<String, String>,
}

impl Writer<'_> {
    /// A structure with its implementations, but for the documentation before it.
    pub fn structure(&self, s: &Struct) -> String {
        let name = &self.names[&s.name];
        let plain = s.fields.iter().all(|field| self.default(field) == self.type_default(field));
        let derived = if plain { "Clone, Debug, Default, PartialEq" } else { "Clone, Debug, PartialEq" };
        let mut code = format!("#[derive({derived})]\npub struct {name} {{\n");
        for field in &s.fields {
            let (ident, ty) = (ident(&field.name), self.rust_type(field));
            code += &format!("{}pub {ident}: {ty},\n", about_field(field, s.versions));
        }
        code += "}\n";
        if !plain {
            code += &format!("\nimpl Default for {name} {{\nfn default() -> Self {{\nSelf {{\n");
            for field in &s.fields {
                code += &format!("{}: {},\n", ident(&field.name), self.default(field));
            }
            code += "}\n}\n}\n";
        }
        code += &format!("\nimpl Wire for {name} {{\n");
        let element =
            |field: &Field| matches!(&field.ty, Type::Array(_)) && field.ty.structure() == Some(&s.name);
        if self.message.structs.iter().flat_map(|user| &user.fields).any(element) {
            code += &self.min_size(s);
        }
        code += &self.decode(s);
        code += &self.encode(s);
        code + "}"
    }

    /// The documentation of a structure.
    pub fn about(&self, s: &Struct) -> String {
        if s.name == self.message.name {
            let Versions { first, last } = s.versions;
            let kind = match self.message.kind {
                Kind::Request => "The request of",
                Kind::Response => "The response of",
                Kind::Key => "The key of a record,",
                Kind::Value => "A record,",
            };
            let what = match self.message.kind {
                Kind::Request | Kind::Response => self.message.api(),
                Kind::Key | Kind::Value => &self.message.name,
            };
            let versions = if first == last {
                format!("version {first}")
            } else {
                format!("versions {first} to {last}")
            };
            return match (self.message.flexible.is_empty(), self.message.kind) {
                (true, Kind::Key) => format!("{kind} `{what}`."),
                (true, _) => format!("{kind} `{what}`, {versions}."),
                (false, _) => {
                    format!("{kind} `{what}`, {versions}, flexible from {}.", self.message.flexible.first)
                }
            };
        }
        let users: Vec<String> = self
            .message
            .structs
            .iter()
            .flat_map(|user| user.fields.iter().map(move |field| (user, field)))
            .filter(|(_, field)| field.ty.structure() == Some(&s.name))
            .map(|(user, field)| format!("[`{}::{}`]", self.names[&user.name], ident(&field.name)))
            .collect();
        format!("See {}.", users.first().expect("every structure is used"))
    }

    /// The fewest bytes of the structure, by version.
    fn min_size(&self, s: &Struct) -> String {
        let sizes: Vec<(i16, usize)> = (s.versions.first..=s.versions.last)
            .map(|version| (version, self.min_size_in(s, version)))
            .collect();
        let mut runs: Vec<(i16, i16, usize)> = Vec::new();
        for (version, size) in sizes {
            match runs.last_mut() {
                Some((_, last, run)) if *run == size => *last = version,
                _ => runs.push((version, version, size)),
            }
        }
        let mut code = String::new();
        if let [(_, _, size)] = runs.as_slice() {
            code += &format!("fn min_size(_: i16, _: bool) -> usize {{\n{size}\n}}\n");
        } else {
            code += "fn min_size(version: i16, _: bool) -> usize {\nmatch version {\n";
            let (last, earlier) = runs.split_last().expect("a structure has a version");
            for (from, to, size) in earlier {
                code += &match (*from == s.versions.first, from == to) {
                    (true, _) => format!("..={to} => {size},\n"),
                    (false, true) => format!("{to} => {size},\n"),
                    (false, false) => format!("{from}..={to} => {size},\n"),
                };
            }
            code += &format!("_ => {},\n}}\n}}\n", last.2);
        }
        code
    }

    fn min_size_in(&self, s: &Struct, version: i16) -> usize {
        let flexible = self.message.flexible.contains(version);
        let fields = s.fields.iter().filter(|field| field.versions.contains(version) && field.tag.is_none());
        let size = fields.map(|field| match &field.ty {
            Type::Bool | Type::Int8 => 1,
            Type::Int16 | Type::Uint16 => 2,
            Type::Int32 | Type::Uint32 => 4,
            Type::Int64 | Type::Float64 => 8,
            Type::Uuid => 16,
            Type::String => {
                if flexible {
                    1
                } else {
                    2
                }
            }
            Type::Bytes | Type::Records | Type::Array(_) => {
                if flexible {
                    1
                } else {
                    4
                }
            }
            Type::Struct(_) if field.nullable.contains(version) => 1,
            Type::Struct(name) => self.min_size_in(self.message.structure(name), version),
        });
        size.sum::<usize>() + usize::from(flexible)
    }

    fn decode(&self, s: &Struct) -> String {
        let mut code = "\nfn decode(d: &mut Decoder) -> Result<Self, DecodeError> {\n".to_owned();
        let mut fields = String::new();
        let mut tags = String::new();
        for field in &s.fields {
            let ident = ident(&field.name);
            let read = self.read(field, s.versions);
            let present = condition(field.versions, s.versions);
            match (field.tag, present) {
                (Some(tag), present) => {
                    fields += &format!("{ident}: {},\n", self.default(field));
                    let guard = present.map(|c| format!(" if {c}")).unwrap_or_default();
                    tags += &format!("{tag}{guard} => value.{ident} = {read},\n");
                }
                (None, None) => fields += &format!("{ident}: {read},\n"),
                (None, Some(present)) => {
                    fields +=
                        &format!("{ident}: if {present} {{ {read} }} else {{ {} }},\n", self.default(field));
                }
            }
        }
        if depends_on_version(&fields) || depends_on_version(&tags) {
            code += "let version = d.version();\n";
        }
        let flexible = !self.message.flexible.intersect(s.versions).is_empty();
        if !flexible {
            code += &format!("Ok(Self {{\n{fields}}})\n");
        } else if tags.is_empty() {
            code += &format!("let value = Self {{\n{fields}}};\nd.skip_tags()?;\nOk(value)\n");
        } else {
            code += &format!(
                "let mut value = Self {{\n{fields}}};\nd.tags(&mut |d, tag| {{\nmatch tag {{\n{tags}"
            );
            code += "_ => return Ok(false),\n}\nOk(true)\n})?;\nOk(value)\n";
        }
        code + "}\n"
    }

    /// The expression that reads a field in a version that has it.
    fn read(&self, field: &Field, within: Versions) -> String {
        let nullable = nullable(field, within);
        match (&field.ty, nullable) {
            (Type::Struct(_), Some(nullable)) => {
                assert_eq!(nullable, "true", "{}: null in some versions only", field.name);
                "d.option_struct()?".to_owned()
            }
            (Type::Struct(name), None) => format!("{}::decode(d)?", self.names[name]),
            (Type::Records, nullable) => format!("d.records({})?", nullable.unwrap_or("false".to_owned())),
            (ty, Some(nullable)) => format!("d.option_{}({nullable})?", method(ty)),
            (ty, None) => format!("d.{}()?", method(ty)),
        }
    }

    fn encode(&self, s: &Struct) -> String {
        let (mut tagged, plain): (Vec<&Field>, Vec<&Field>) = s.fields.iter().partition(|f| f.tag.is_some());
        tagged.sort_by_key(|field| field.tag);
        let fields = self.encode_fields(&plain, s, |field| self.write(field, s));
        let tags = self.encode_fields(&tagged, s, |field| {
            let write = self.write(field, s);
            let write = match write.strip_suffix("?;\n") {
                Some(result) => result.to_owned(),
                None => format!("{{\n{write}Ok(())\n}}"),
            };
            let tag = field.tag.expect("it is tagged");
            format!("if {} {{\ne.tag(tags, {tag}, |e| {write})?;\n}}\n", self.is_set(field))
        });
        let mut code = "\nfn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {\n".to_owned();
        if depends_on_version(&fields) || depends_on_version(&tags) {
            code += "let version = e.version();\n";
        }
        code += &fields;
        if !tags.is_empty() {
            code += &format!("let tags = e.tags();\n{tags}");
        } else if !self.message.flexible.intersect(s.versions).is_empty() {
            code += "e.no_tags();\n";
        }
        code + "Ok(())\n}\n"
    }

    /// Writes fields, neighbours that exist in the same versions under one condition. Where they do not
    /// exist, those that must not get lost are refused.
    fn encode_fields(&self, fields: &[&Field], s: &Struct, write: impl Fn(&Field) -> String) -> String {
        let mut code = String::new();
        for run in fields.chunk_by(|a, b| a.versions == b.versions) {
            let present: String = run.iter().map(|field| write(field)).collect();
            let absent: String = run
                .iter()
                .filter(|field| !field.ignorable)
                .map(|field| format!("e.absent({}, {})?;\n", self.is_set(field), self.path(s, field)))
                .collect();
            code += &match condition(run[0].versions, s.versions) {
                None => present,
                Some(condition) if absent.is_empty() && run.len() == 1 && present.starts_with("if ") => {
                    present.replacen("if ", &format!("if {condition} && "), 1)
                }
                Some(condition) if absent.is_empty() => format!("if {condition} {{\n{present}}}\n"),
                Some(condition) => format!("if {condition} {{\n{present}}} else {{\n{absent}}}\n"),
            };
        }
        code
    }

    /// The statement that writes a field in a version that has it.
    fn write(&self, field: &Field, s: &Struct) -> String {
        let ident = ident(&field.name);
        let method = method(&field.ty);
        let path = self.path(s, field);
        match (&field.ty, nullable(field, s.versions)) {
            (Type::Struct(_), Some(_)) => format!("e.option_struct(self.{ident}.as_ref())?;\n"),
            (Type::Struct(_), None) => format!("self.{ident}.encode(e)?;\n"),
            (Type::Records, nullable) => {
                let nullable = nullable.unwrap_or("false".to_owned());
                format!("e.records(self.{ident}.as_ref(), {nullable}, {path})?;\n")
            }
            (_, Some(nullable)) => {
                format!("e.option_{method}(self.{ident}.as_deref(), {nullable}, {path})?;\n")
            }
            (Type::String | Type::Bytes | Type::Array(_), None) => format!("e.{method}(&self.{ident})?;\n"),
            (_, None) => format!("e.{method}(self.{ident});\n"),
        }
    }

    /// The expression that says whether a field has another value than its default.
    fn is_set(&self, field: &Field) -> String {
        let value = format!("self.{}", ident(&field.name));
        let default = self.default(field);
        match (&field.ty, default.as_str()) {
            (_, "None") => format!("{value}.is_some()"),
            (Type::Bool, "false") => value,
            (Type::Bool, _) => format!("!{value}"),
            (Type::String, "Some(ByteString::new())") => format!("{value}.as_deref() != Some(\"\")"),
            (Type::Array(_), "Some(Vec::new())") => {
                format!("{value}.as_ref().is_none_or(|all| !all.is_empty())")
            }
            (Type::Uuid, _) => format!("!{value}.is_zero()"),
            (_, "ByteString::new()" | "Bytes::new()" | "Vec::new()") => format!("!{value}.is_empty()"),
            (_, default) => format!("{value} != {default}"),
        }
    }

    fn path(&self, s: &Struct, field: &Field) -> String {
        format!("\"{}::{}\"", self.names[&s.name], snake(&field.name))
    }

    fn rust_type(&self, field: &Field) -> String {
        let ty = self.plain_type(&field.ty);
        if is_option(field) { format!("Option<{ty}>") } else { ty }
    }

    fn plain_type(&self, ty: &Type) -> String {
        match ty {
            Type::Bool => "bool".to_owned(),
            Type::Int8 => "i8".to_owned(),
            Type::Int16 => "i16".to_owned(),
            Type::Uint16 => "u16".to_owned(),
            Type::Int32 => "i32".to_owned(),
            Type::Uint32 => "u32".to_owned(),
            Type::Int64 => "i64".to_owned(),
            Type::Float64 => "f64".to_owned(),
            Type::Uuid => "Uuid".to_owned(),
            Type::String => "ByteString".to_owned(),
            Type::Bytes => "Bytes".to_owned(),
            Type::Records => "Records".to_owned(),
            Type::Array(element) => format!("Vec<{}>", self.plain_type(element)),
            Type::Struct(name) => self.names[name].clone(),
        }
    }

    /// The default as an expression.
    fn default(&self, field: &Field) -> String {
        if is_option(field) && field.null_by_default() {
            return "None".to_owned();
        }
        let given = field.default.as_deref().unwrap_or_default();
        let plain = match &field.ty {
            Type::Bool => given.eq_ignore_ascii_case("true").to_string(),
            Type::Float64 if given.is_empty() => "0.0".to_owned(),
            Type::Int8 | Type::Int16 | Type::Uint16 | Type::Int32 | Type::Uint32 | Type::Int64 => {
                number(given)
            }
            Type::Uuid => "Uuid::ZERO".to_owned(),
            Type::String if given.is_empty() => "ByteString::new()".to_owned(),
            Type::Bytes => "Bytes::new()".to_owned(),
            Type::Array(_) => "Vec::new()".to_owned(),
            Type::Struct(name) => format!("{}::default()", self.names[name]),
            Type::String | Type::Float64 | Type::Records => panic!("{}: default {given}", field.name),
        };
        if is_option(field) { format!("Some({plain})") } else { plain }
    }

    /// The default that `derive(Default)` would give.
    fn type_default(&self, field: &Field) -> String {
        if is_option(field) {
            return "None".to_owned();
        }
        self.default(&Field { default: None, ..field.clone() })
    }
}

/// The documentation of a field that differs between versions.
fn about_field(field: &Field, within: Versions) -> String {
    let mut about = Vec::new();
    about.extend(match (field.versions.first > within.first, field.versions.last < within.last) {
        (false, false) => None,
        (true, false) => Some(format!("From version {}.", field.versions.first)),
        (false, true) => Some(format!("To version {}.", field.versions.last)),
        (true, true) if field.versions.first == field.versions.last => {
            Some(format!("In version {} only.", field.versions.first))
        }
        (true, true) => Some(format!("In versions {} to {}.", field.versions.first, field.versions.last)),
    });
    if field.ignorable && field.versions != within {
        about.push("Left out of others.".to_owned());
    }
    if !field.nullable.is_empty() && field.nullable != field.versions {
        let to = match field.nullable.last {
            last if last < field.versions.last => format!(" to {last}"),
            _ => String::new(),
        };
        about.push(format!("Null from version {}{to}.", field.nullable.first));
    }
    if about.is_empty() { String::new() } else { format!("/// {}\n", about.join(" ")) }
}

/// The integer as it is best read.
fn number(text: &str) -> String {
    let value: i64 = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).expect("a default is a number"),
        None if text.is_empty() => 0,
        None => text.parse().expect("a default is a number"),
    };
    match value {
        i64::MAX => "i64::MAX".to_owned(),
        _ if value == i64::from(i32::MAX) => "i32::MAX".to_owned(),
        _ if value == i64::from(i32::MIN) => "i32::MIN".to_owned(),
        _ => value.to_string(),
    }
}

/// Whether a field is an `Option`: records always, the others if they may be null in some version.
fn is_option(field: &Field) -> bool {
    field.ty == Type::Records || !field.nullable.is_empty()
}

/// Whether a field that exists may be null, as an expression of the version; `None` if it never may.
fn nullable(field: &Field, within: Versions) -> Option<String> {
    if field.nullable.is_empty() {
        return None;
    }
    let condition = condition(field.nullable, field.versions.intersect(within));
    Some(condition.unwrap_or_else(|| "true".to_owned()))
}

/// The condition for `versions`, where the version is known to be in `within`; `None` if it always holds.
fn condition(versions: Versions, within: Versions) -> Option<String> {
    match (versions.first > within.first, versions.last < within.last) {
        (false, false) => None,
        (true, false) => Some(format!("version >= {}", versions.first)),
        (false, true) => Some(format!("version <= {}", versions.last)),
        (true, true) if versions.first == versions.last => Some(format!("version == {}", versions.first)),
        (true, true) => Some(format!("({}..={}).contains(&version)", versions.first, versions.last)),
    }
}

fn depends_on_version(code: &str) -> bool {
    ["version >= ", "version <= ", "version == ", "(&version)"].iter().any(|use_of| code.contains(use_of))
}

/// The method of `Decoder` and `Encoder` for a type.
fn method(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::Int8 => "i8",
        Type::Int16 => "i16",
        Type::Uint16 => "u16",
        Type::Int32 => "i32",
        Type::Uint32 => "u32",
        Type::Int64 => "i64",
        Type::Float64 => "f64",
        Type::Uuid => "uuid",
        Type::String => "string",
        Type::Bytes => "bytes",
        Type::Records => "records",
        Type::Array(_) => "array",
        Type::Struct(_) => "struct",
    }
}

fn ident(name: &str) -> String {
    match snake(name).as_str() {
        word @ ("type" | "match" | "ref" | "move" | "use" | "loop" | "impl" | "mod") => format!("r#{word}"),
        word => word.to_owned(),
    }
}

pub fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let after_lower = at > 0 && !letters[at - 1].is_uppercase();
        let before_lower = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && at > 0 && (after_lower || before_lower) {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
