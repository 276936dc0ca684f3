//! GGUF key-value metadata: validated once, decoded from the mapped file on access.

use std::collections::HashMap;
use std::ops::Range;

use super::super::Problem;
use super::super::error::quoted;
use super::cursor::Cursor;

/// The limit for keys in the GGUF specification.
const MAX_KEY_BYTES: u64 = 65535;
/// Key length, type and the shortest value.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 1;
/// Vocabularies and merge lists stay below a million entries.
const MAX_ARRAY_LEN: u64 = 1 << 22;

/// Type of a metadata value or array element, with the numbers used in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl ValueType {
    fn from_code(code: u32) -> Option<Self> {
        const ALL: [ValueType; 13] = [
            ValueType::U8,
            ValueType::I8,
            ValueType::U16,
            ValueType::I16,
            ValueType::U32,
            ValueType::I32,
            ValueType::F32,
            ValueType::Bool,
            ValueType::String,
            ValueType::Array,
            ValueType::U64,
            ValueType::I64,
            ValueType::F64,
        ];
        ALL.get(code as usize).copied()
    }

    /// Minimum size of a value in bytes: for strings and arrays, that of their length field.
    fn min_bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::String => 8,
            Self::Array => 12,
        }
    }
}

/// A decoded value; strings and arrays borrow the map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetadataValue<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(&'a str),
    Array(MetadataArray<'a>),
}

impl MetadataValue<'_> {
    /// The value as an unsigned integer, if it is a non-negative one of any width.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(value) => Some(value.into()),
            Self::U16(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            Self::U64(value) => Some(value),
            Self::I8(value) => value.try_into().ok(),
            Self::I16(value) => value.try_into().ok(),
            Self::I32(value) => value.try_into().ok(),
            Self::I64(value) => value.try_into().ok(),
            _ => None,
        }
    }
}

/// An array of scalars or strings, still encoded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetadataArray<'a> {
    pub element: ValueType,
    pub len: usize,
    bytes: &'a [u8],
}

impl<'a> MetadataArray<'a> {
    /// The elements in order. Decoding an array costs O(len) each time.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = MetadataValue<'a>> + use<'a> {
        let element = self.element;
        let mut rest = self.bytes;
        (0..self.len).map(move |_| {
            let length = match element {
                ValueType::String => take_length(&mut rest),
                other => other.min_bytes() as usize,
            };
            let (bytes, tail) = rest.split_at(length);
            rest = tail;
            decode(element, bytes)
        })
    }
}

/// Consumes a string's length prefix. It was validated when parsed, but the file may have changed since; clamping to the
/// remaining bytes prevents a panic.
fn take_length(rest: &mut &[u8]) -> usize {
    let Some((prefix, tail)) = rest.split_first_chunk::<8>() else {
        *rest = &[];
        return 0;
    };
    *rest = tail;
    usize::try_from(u64::from_le_bytes(*prefix))
        .unwrap_or(usize::MAX)
        .min(tail.len())
}

/// Location of a validated value in the file.
#[derive(Debug)]
struct Stored {
    kind: ValueType,
    /// Element type and count, for arrays.
    array: Option<(ValueType, usize)>,
    /// The value's bytes, without length prefixes of the value itself.
    range: Range<usize>,
}

/// All keys and the locations of their values.
#[derive(Debug)]
pub(super) struct Metadata {
    entries: Vec<(String, Stored)>,
    index: HashMap<String, usize>,
}

impl Metadata {
    /// Reads `count` entries.
    pub(super) fn parse(cursor: &mut Cursor<'_>, count: u64) -> Result<Self, Problem> {
        let limit = cursor.remaining() / MIN_ENTRY_BYTES;
        if count > limit {
            return Err(Problem::TooMany {
                what: "metadata entries",
                count,
                limit,
            });
        }
        let mut metadata = Self {
            entries: Vec::new(),
            index: HashMap::new(),
        };
        for _ in 0..count {
            let key = cursor.name(MAX_KEY_BYTES, "bytes of a metadata key")?;
            let stored = parse_value(cursor, key)?;
            if metadata
                .index
                .insert(key.to_owned(), metadata.entries.len())
                .is_some()
            {
                return Err(Problem::Duplicate {
                    what: "metadata key",
                    name: quoted(key),
                });
            }
            metadata.entries.push((key.to_owned(), stored));
        }
        Ok(metadata)
    }

    pub(super) fn get<'a>(&self, key: &str, file: &'a [u8]) -> Option<MetadataValue<'a>> {
        self.index
            .get(key)
            .map(|&at| self.entries[at].1.decode(file))
    }

    pub(super) fn entries<'a>(
        &'a self,
        file: &'a [u8],
    ) -> impl Iterator<Item = (&'a str, MetadataValue<'a>)> {
        self.entries
            .iter()
            .map(|(key, stored)| (key.as_str(), stored.decode(file)))
    }
}

impl Stored {
    fn decode<'a>(&self, file: &'a [u8]) -> MetadataValue<'a> {
        let bytes = &file[self.range.clone()];
        match self.array {
            Some((element, len)) => MetadataValue::Array(MetadataArray {
                element,
                len,
                bytes,
            }),
            None => decode(self.kind, bytes),
        }
    }
}

fn parse_value(cursor: &mut Cursor<'_>, key: &str) -> Result<Stored, Problem> {
    let location = format!("metadata {}", quoted(key));
    let kind = parse_type(cursor, key, &location)?;
    if kind != ValueType::Array {
        let range = parse_scalar(cursor, kind, key, &location)?;
        return Ok(Stored {
            kind,
            array: None,
            range,
        });
    }
    let element = parse_type(cursor, key, &location)?;
    if element == ValueType::Array {
        return Err(Problem::NestedArray(quoted(key)));
    }
    let count = cursor.u64(&location)?;
    let limit = (cursor.remaining() / element.min_bytes()).min(MAX_ARRAY_LEN);
    if count > limit {
        return Err(Problem::TooMany {
            what: "elements of a metadata array",
            count,
            limit,
        });
    }
    let start = cursor.position();
    if matches!(element, ValueType::String | ValueType::Bool) {
        for _ in 0..count {
            parse_scalar(cursor, element, key, &location)?;
        }
    } else {
        cursor.skip(count * element.min_bytes(), &location)?;
    }
    let range = start..cursor.position();
    Ok(Stored {
        kind,
        array: Some((element, count as usize)),
        range,
    })
}

fn parse_type(cursor: &mut Cursor<'_>, key: &str, location: &str) -> Result<ValueType, Problem> {
    let code = cursor.u32(location)?;
    ValueType::from_code(code).ok_or_else(|| Problem::MetadataType {
        key: quoted(key),
        kind: code,
    })
}

/// Validates one scalar or string and returns the range of its bytes.
fn parse_scalar(
    cursor: &mut Cursor<'_>,
    kind: ValueType,
    key: &str,
    location: &str,
) -> Result<Range<usize>, Problem> {
    match kind {
        ValueType::String => Ok(cursor.string(location)?.0),
        ValueType::Bool => {
            let start = cursor.position();
            match cursor.u8(location)? {
                0 | 1 => Ok(start..cursor.position()),
                _ => Err(Problem::BadBool(quoted(key))),
            }
        }
        other => cursor.skip(other.min_bytes(), location),
    }
}

/// Decodes bytes that `parse_scalar` accepted. The file may have changed on disk since, so text is
/// validated again; invalid text is returned as empty.
fn decode(kind: ValueType, bytes: &[u8]) -> MetadataValue<'_> {
    macro_rules! number {
        ($type:ty) => {
            <$type>::from_le_bytes(bytes.try_into().expect("parse_scalar took the type's size"))
        };
    }
    match kind {
        ValueType::U8 => MetadataValue::U8(number!(u8)),
        ValueType::I8 => MetadataValue::I8(number!(i8)),
        ValueType::U16 => MetadataValue::U16(number!(u16)),
        ValueType::I16 => MetadataValue::I16(number!(i16)),
        ValueType::U32 => MetadataValue::U32(number!(u32)),
        ValueType::I32 => MetadataValue::I32(number!(i32)),
        ValueType::F32 => MetadataValue::F32(number!(f32)),
        ValueType::U64 => MetadataValue::U64(number!(u64)),
        ValueType::I64 => MetadataValue::I64(number!(i64)),
        ValueType::F64 => MetadataValue::F64(number!(f64)),
        ValueType::Bool => MetadataValue::Bool(bytes[0] != 0),
        ValueType::String => MetadataValue::String(std::str::from_utf8(bytes).unwrap_or_default()),
        ValueType::Array => unreachable!("arrays are decoded by MetadataArray"),
    }
}
