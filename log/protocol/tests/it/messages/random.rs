//! Random messages by the schema: as a value, as the bytes it should be, and as the `Debug` text it should
//! have once decoded. Shares nothing with the codec but the reader of `messages.txt`.

use bytes::Bytes;

use super::schema::{Field, Message, Struct, Type};
use super::structure::snake;

/// Where choices come from: bytes that a test framework made up. When they are used up everything is as small
/// as possible.
pub struct Entropy<'a>(pub &'a [u8]);

impl Entropy<'_> {
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                *byte
            }
            None => 0,
        }
    }

    fn number(&mut self) -> i64 {
        match self.byte() {
            0 => 0,
            1 => -1,
            2 => i64::MAX,
            3 => i64::MIN,
            byte @ 4..128 => byte.into(),
            _ => i64::from_be_bytes(std::array::from_fn(|_| self.byte())),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(i64),
    Float(f64),
    Uuid([u8; 16]),
    Text(String),
    Blob(Vec<u8>),
    List(Vec<Value>),
    /// One value for each field of the structure, the default for those that the version lacks.
    Struct(Vec<Value>),
}

/// A message in one of its versions.
pub struct Sample<'a> {
    message: &'a Message,
    version: i16,
    value: Value,
}

impl<'a> Sample<'a> {
    pub fn new(message: &'a Message, version: i16, entropy: &mut Entropy<'_>) -> Self {
        let value = random_struct(message, &message.structs[0], version, entropy);
        Self { message, version, value }
    }

    /// What the message should be on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer { message: self.message, version: self.version, out: &mut out };
        writer.structure(&self.message.structs[0], &self.value);
        out
    }

    /// What `{:?}` of the decoded message should be.
    pub fn text(&self) -> String {
        text_of_struct(self.message, &self.message.structs[0], &self.value)
    }
}

fn random_struct(message: &Message, s: &Struct, version: i16, entropy: &mut Entropy<'_>) -> Value {
    let field = |field: &Field| match field.versions.contains(version) {
        false => default(message, field),
        true if field.nullable.contains(version) && entropy.byte().is_multiple_of(4) => Value::Null,
        true => random(message, &field.ty, version, entropy),
    };
    Value::Struct(s.fields.iter().map(field).collect())
}

fn random(message: &Message, ty: &Type, version: i16, entropy: &mut Entropy<'_>) -> Value {
    match ty {
        Type::Bool => Value::Bool(entropy.byte() % 2 == 1),
        Type::Int8 => Value::Number(i64::from(entropy.number() as i8)),
        Type::Int16 => Value::Number(i64::from(entropy.number() as i16)),
        Type::Uint16 => Value::Number(i64::from(entropy.number() as u16)),
        Type::Int32 => Value::Number(i64::from(entropy.number() as i32)),
        Type::Uint32 => Value::Number(i64::from(entropy.number() as u32)),
        Type::Int64 => Value::Number(entropy.number()),
        Type::Float64 => Value::Float(entropy.number() as f64 / 8.0),
        Type::Uuid => Value::Uuid(std::array::from_fn(|_| entropy.byte())),
        Type::String => {
            let length = length(entropy);
            Value::Text(
                (0..length)
                    .map(|_| ['a', 'z', '-', 'é', '0', '漢'][usize::from(entropy.byte() % 6)])
                    .collect(),
            )
        }
        Type::Bytes | Type::Records => {
            let length = length(entropy);
            Value::Blob((0..length).map(|_| entropy.byte()).collect())
        }
        Type::Array(element) => {
            let count = match entropy.byte() {
                255 if element.structure().is_none() => 130,
                byte => byte % 4,
            };
            Value::List((0..count).map(|_| random(message, element, version, entropy)).collect())
        }
        Type::Struct(name) => random_struct(message, message.structure(name), version, entropy),
    }
}

/// Short, but sometimes too long for one byte of a varint.
fn length(entropy: &mut Entropy<'_>) -> usize {
    match entropy.byte() {
        255 => 300,
        254 => 127,
        byte => usize::from(byte % 8),
    }
}

fn default(message: &Message, field: &Field) -> Value {
    let given = field.default.as_deref().unwrap_or("");
    match &field.ty {
        _ if matches!(given, "null" | "None") => Value::Null,
        Type::Records => Value::Null,
        Type::Bool => Value::Bool(matches!(given, "true" | "True")),
        Type::Float64 => Value::Float(0.0),
        Type::Uuid => Value::Uuid([0; 16]),
        Type::String => Value::Text(given.to_owned()),
        Type::Bytes => Value::Blob(Vec::new()),
        Type::Array(_) => Value::List(Vec::new()),
        Type::Struct(name) => Value::Struct(
            message.structure(name).fields.iter().map(|field| default(message, field)).collect(),
        ),
        _ => Value::Number(match given.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).unwrap(),
            None if given.is_empty() => 0,
            None => given.parse().unwrap(),
        }),
    }
}

struct Writer<'a> {
    message: &'a Message,
    version: i16,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn structure(&mut self, s: &Struct, value: &Value) {
        let Value::Struct(values) = value else { panic!("{value:?} is no {}", s.name) };
        let mut tagged = Vec::new();
        for (field, value) in s.fields.iter().zip(values) {
            match field.tag {
                _ if !field.versions.contains(self.version) => {}
                None => self.value(&field.ty, value, field.nullable.contains(self.version)),
                Some(_) if *value == default(self.message, field) => {}
                Some(tag) => {
                    let mut out = Vec::new();
                    let mut inner = Writer { message: self.message, version: self.version, out: &mut out };
                    inner.value(&field.ty, value, field.nullable.contains(self.version));
                    tagged.push((tag, out));
                }
            }
        }
        if self.flexible() {
            tagged.sort();
            self.varint(tagged.len());
            for (tag, bytes) in tagged {
                self.varint(tag as usize);
                self.varint(bytes.len());
                self.out.extend(bytes);
            }
        }
    }

    fn flexible(&self) -> bool {
        self.message.flexible.contains(self.version)
    }

    fn varint(&mut self, mut value: usize) {
        while value > 127 {
            self.out.push((value % 128 + 128) as u8);
            value /= 128;
        }
        self.out.push(value as u8);
    }

    fn length(&mut self, ty: &Type, length: Option<usize>) {
        match (self.flexible(), ty) {
            (true, _) => self.varint(length.map_or(0, |length| length + 1)),
            (false, Type::String) => self.out.extend(length.map_or(-1, |length| length as i16).to_be_bytes()),
            (false, _) => self.out.extend(length.map_or(-1, |length| length as i32).to_be_bytes()),
        }
    }

    fn value(&mut self, ty: &Type, value: &Value, nullable: bool) {
        match (ty, value) {
            (Type::Struct(_), Value::Null) => self.out.push(0xff),
            (_, Value::Null) => self.length(ty, None),
            (Type::Struct(name), value) => {
                if nullable {
                    self.out.push(1);
                }
                let message = self.message;
                self.structure(message.structure(name), value);
            }
            (Type::Array(element), Value::List(values)) => {
                self.length(ty, Some(values.len()));
                for value in values {
                    self.value(element, value, false);
                }
            }
            (_, Value::Text(text)) => {
                self.length(ty, Some(text.len()));
                self.out.extend(text.as_bytes());
            }
            (_, Value::Blob(bytes)) => {
                self.length(ty, Some(bytes.len()));
                self.out.extend(bytes);
            }
            (_, Value::Bool(bool)) => self.out.push((*bool).into()),
            (_, Value::Uuid(uuid)) => self.out.extend(uuid),
            (_, Value::Float(float)) => self.out.extend(float.to_be_bytes()),
            (Type::Int8, Value::Number(number)) => self.out.extend(&number.to_be_bytes()[7..]),
            (Type::Int16 | Type::Uint16, Value::Number(number)) => {
                self.out.extend(&number.to_be_bytes()[6..])
            }
            (Type::Int32 | Type::Uint32, Value::Number(number)) => {
                self.out.extend(&number.to_be_bytes()[4..])
            }
            (_, Value::Number(number)) => self.out.extend(number.to_be_bytes()),
            (ty, value) => panic!("{value:?} is no {ty:?}"),
        }
    }
}

fn text_of_struct(message: &Message, s: &Struct, value: &Value) -> String {
    let Value::Struct(values) = value else { panic!("{value:?} is no {}", s.name) };
    if values.is_empty() {
        return s.name.clone();
    }
    let fields: Vec<String> = s
        .fields
        .iter()
        .zip(values)
        .map(|(field, value)| {
            let text = match value {
                Value::Null => "None".to_owned(),
                value if field.ty == Type::Records || !field.nullable.is_empty() => {
                    format!("Some({})", text_of(message, &field.ty, value))
                }
                value => text_of(message, &field.ty, value),
            };
            format!("{}: {text}", snake(&field.name))
        })
        .collect();
    format!("{} {{ {} }}", s.name, fields.join(", "))
}

fn text_of(message: &Message, ty: &Type, value: &Value) -> String {
    match (ty, value) {
        (Type::Struct(name), value) => text_of_struct(message, message.structure(name), value),
        (Type::Array(element), Value::List(values)) => {
            let elements: Vec<String> = values.iter().map(|value| text_of(message, element, value)).collect();
            format!("[{}]", elements.join(", "))
        }
        (Type::Records, Value::Blob(bytes)) => format!("Bytes({:?})", Bytes::copy_from_slice(bytes)),
        (_, Value::Blob(bytes)) => format!("{:?}", Bytes::copy_from_slice(bytes)),
        (_, Value::Text(text)) => format!("{text:?}"),
        (_, Value::Bool(bool)) => bool.to_string(),
        (_, Value::Number(number)) => number.to_string(),
        (_, Value::Float(float)) => format!("{float:?}"),
        (_, Value::Uuid(uuid)) => thalweg_protocol::Uuid(*uuid).to_string(),
        (ty, value) => panic!("{value:?} is no {ty:?}"),
    }
}
