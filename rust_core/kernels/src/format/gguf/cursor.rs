//! A bounds-checked little-endian reader over a header's bytes.

use std::ops::Range;

use super::super::Problem;
use super::super::error::quoted;
use super::MAX_HEADER_BYTES;

/// A forward-only reader. Every read is checked against the end of the file and the header size limit.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes consumed so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Bytes from the current position to the end of the file.
    pub(super) fn remaining(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    /// Consumes `count` bytes and returns their range. `what` names them in the error message.
    pub(super) fn skip(&mut self, count: u64, what: &str) -> Result<Range<usize>, Problem> {
        let end = usize::try_from(count)
            .ok()
            .and_then(|count| self.at.checked_add(count))
            .filter(|&end| end <= self.bytes.len())
            .ok_or_else(|| Problem::Truncated(what.to_owned()))?;
        if end > MAX_HEADER_BYTES {
            return Err(Problem::HeaderTooLarge(MAX_HEADER_BYTES));
        }
        let range = self.at..end;
        self.at = end;
        Ok(range)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Problem> {
        let range = self.skip(N as u64, what)?;
        let mut out = [0; N];
        out.copy_from_slice(&self.bytes[range]);
        Ok(out)
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, Problem> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, Problem> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, Problem> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A length-prefixed UTF-8 string: its byte range and its text.
    pub(super) fn string(&mut self, what: &str) -> Result<(Range<usize>, &'a str), Problem> {
        let length = self.u64(what)?;
        let range = self.skip(length, what)?;
        let text = std::str::from_utf8(&self.bytes[range.clone()])
            .map_err(|_| Problem::NotUtf8(what.to_owned()))?;
        Ok((range, text))
    }

    /// A metadata key or tensor name of at most `longest` bytes.
    pub(super) fn name(&mut self, longest: u64, what: &'static str) -> Result<&'a str, Problem> {
        let length = self.u64(what)?;
        if length > longest {
            return Err(Problem::TooMany {
                what,
                count: length,
                limit: longest,
            });
        }
        let range = self.skip(length, what)?;
        let bytes = &self.bytes[range];
        std::str::from_utf8(bytes)
            .map_err(|_| Problem::NotUtf8(quoted(&String::from_utf8_lossy(bytes))))
    }
}
