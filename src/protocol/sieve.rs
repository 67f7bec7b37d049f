//! Takes a row apart while it arrives in pieces: values of the columns that are wanted are kept, all
//! others are skipped, so that a row of any size takes no more memory than what is wanted of it.
//!
//! What is kept has the form of the row that came, with NULL for each value that was left out.

use super::backend::{OmittedValue, Problem};
use super::framing::take;

/// Bound on the values that are kept of one row. A server could send 1 GiB; thousands of clients that
/// each keep such a row would not fit into memory.
pub const ROW_BYTES_MAX: usize = 64 << 20;

/// Which rows are wanted, and which of their columns.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    rows: bool,
    /// From the left; columns beyond the end are wanted.
    columns: Vec<bool>,
}

impl Wanted {
    /// All columns of all rows, or no rows at all.
    pub(super) fn set_rows(&mut self, wanted: bool) {
        self.rows = wanted;
        self.columns.clear();
    }

    pub(super) fn set_columns(&mut self, wanted: impl IntoIterator<Item = bool>) {
        self.columns.clear();
        self.columns.extend(wanted);
    }

    pub(super) fn rows(&self) -> bool {
        self.rows
    }

    fn column(&self, column: usize) -> bool {
        self.columns.get(column).copied().unwrap_or(true)
    }

    /// Memory held.
    pub(super) fn held_bytes(&self) -> usize {
        self.columns.capacity()
    }
}

/// A row that has not arrived completely. What is kept of it lies in a buffer of the caller's.
#[derive(Debug)]
pub(super) struct Sieve {
    /// Bytes of the row that are still to come.
    left_bytes: usize,
    part: Part,
    /// Number of the column that is being read, and how many there are.
    column: usize,
    columns: usize,
    /// Where in the buffer the number begins that is being read.
    number_at: usize,
    omitted: Option<OmittedValue>,
}

/// What of a row comes next.
#[derive(Debug)]
enum Part {
    /// How many columns there are.
    Count,
    /// The length of a value.
    Length,
    /// The rest of a value.
    Value { left_bytes: usize, kept: bool },
    /// Nothing.
    End,
}

impl Sieve {
    /// A row with a body of so many bytes. What is kept of it is appended to a buffer that has `kept`
    /// bytes now.
    pub(super) fn new(body_bytes: usize, kept: usize) -> Self {
        Sieve {
            left_bytes: body_bytes,
            part: Part::Count,
            column: 0,
            columns: 0,
            number_at: kept,
            omitted: None,
        }
    }

    /// A wanted value that was left out because the row is too long.
    pub(super) fn omitted(&self) -> Option<OmittedValue> {
        self.omitted
    }

    /// Reads on; true when the row is complete.
    pub(super) fn read(
        &mut self,
        input: &mut &[u8],
        wanted: &Wanted,
        kept: &mut Vec<u8>,
    ) -> Result<bool, Problem> {
        let mut piece = take(input, self.left_bytes);
        self.left_bytes -= piece.len();
        while !piece.is_empty() {
            self.read_part(&mut piece, wanted, kept)?;
        }
        match self.part {
            Part::End => Ok(self.left_bytes == 0),
            Part::Count | Part::Length | Part::Value { .. } if self.left_bytes > 0 => Ok(false),
            Part::Count | Part::Length | Part::Value { .. } => Err("it ends too early"),
        }
    }

    fn read_part(
        &mut self,
        piece: &mut &[u8],
        wanted: &Wanted,
        kept: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        match self.part {
            Part::Count => {
                if let Some(count) = self.read_number::<2>(piece, kept) {
                    self.columns = usize::from(u16::from_be_bytes(count));
                    self.begin_column(kept);
                }
            }
            Part::Length => {
                if let Some(length) = self.read_number::<4>(piece, kept) {
                    self.begin_value(i32::from_be_bytes(length), wanted, kept)?;
                }
            }
            Part::Value {
                ref mut left_bytes,
                kept: keep,
            } => {
                let value = take(piece, *left_bytes);
                *left_bytes -= value.len();
                let ends = *left_bytes == 0;
                if keep {
                    kept.extend_from_slice(value);
                }
                if ends {
                    self.column += 1;
                    self.begin_column(kept);
                }
            }
            Part::End => return Err("it is longer than its contents"),
        }
        Ok(())
    }

    /// The number that is being read, once it is complete.
    fn read_number<const BYTES: usize>(
        &self,
        piece: &mut &[u8],
        kept: &mut Vec<u8>,
    ) -> Option<[u8; BYTES]> {
        let missing = self.number_at + BYTES - kept.len();
        kept.extend_from_slice(take(piece, missing));
        kept[self.number_at..].try_into().ok()
    }

    fn begin_column(&mut self, kept: &[u8]) {
        self.number_at = kept.len();
        self.part = match self.column < self.columns {
            true => Part::Length,
            false => Part::End,
        };
    }

    fn begin_value(
        &mut self,
        length: i32,
        wanted: &Wanted,
        kept: &mut [u8],
    ) -> Result<(), Problem> {
        let bytes = match length {
            -1 => 0,
            length => usize::try_from(length).map_err(|_| "a value has a negative length")?,
        };
        let is_wanted = wanted.column(self.column);
        let fits = kept.len() + bytes <= ROW_BYTES_MAX;
        if is_wanted && !fits && self.omitted.is_none() {
            let column = self.column;
            self.omitted = Some(OmittedValue { column, bytes });
        }
        let keep = is_wanted && fits;
        if !keep {
            kept[self.number_at..].copy_from_slice(&(-1_i32).to_be_bytes());
        }
        if bytes == 0 {
            self.column += 1;
            self.begin_column(kept);
        } else {
            let left_bytes = bytes;
            self.part = Part::Value {
                left_bytes,
                kept: keep,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row's body: its values, one after the other.
    fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
        let mut body = (values.len() as u16).to_be_bytes().to_vec();
        for value in values {
            let length = value.map_or(-1, |value| value.len() as i32);
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(value.unwrap_or_default());
        }
        body
    }

    fn sift(body: &[u8], wanted: &Wanted, piece_bytes: usize) -> Result<Vec<u8>, Problem> {
        let mut kept = b"before".to_vec();
        let mut sieve = Sieve::new(body.len(), kept.len());
        for (number, mut piece) in body.chunks(piece_bytes).enumerate() {
            let complete = sieve.read(&mut piece, wanted, &mut kept)?;
            assert!(piece.is_empty());
            assert_eq!(complete, (number + 1) * piece_bytes >= body.len());
        }
        Ok(kept.split_off(6))
    }

    #[test]
    fn of_a_row_only_the_wanted_columns_are_kept_wherever_it_is_cut() {
        let values: [Option<&[u8]>; 5] = [Some(b"one"), None, Some(b""), Some(b"four"), Some(b"5")];
        for wanted_bits in 0..32_u8 {
            let is_wanted = |column: usize| wanted_bits >> column & 1 == 1;
            let mut wanted = Wanted::default();
            wanted.set_columns((0..5).map(is_wanted));
            let mut left = values;
            for (column, value) in left.iter_mut().enumerate() {
                *value = value.filter(|_| is_wanted(column));
            }
            for piece_bytes in 1..=30 {
                assert_eq!(sift(&row(&values), &wanted, piece_bytes), Ok(row(&left)));
            }
        }
    }

    #[test]
    fn a_row_that_is_none_is_an_error_wherever_it_is_cut() {
        let cases: [(&[u8], Problem); 5] = [
            (b"\0", "it ends too early"),
            (b"\0\x01\0\0", "it ends too early"),
            (b"\0\x01\0\0\0\x09x", "it ends too early"),
            (b"\0\x01\xff\xff\xff\xfe", "a value has a negative length"),
            (b"\0\x01\0\0\0\0x", "it is longer than its contents"),
        ];
        for (body, problem) in cases {
            for piece_bytes in 1..=body.len() {
                let result = sift(body, &Wanted::default(), piece_bytes);
                assert_eq!(result, Err(problem), "{body:?}");
            }
        }
    }

    #[test]
    fn a_value_beyond_the_bound_is_left_out_and_told() {
        let bytes = ROW_BYTES_MAX as u32;
        let mut kept = Vec::new();
        let mut sieve = Sieve::new(2 + 4 + bytes as usize + 4 + 1, 0);
        let mut wanted = Wanted::default();
        wanted.set_rows(true);
        let mut head = [&b"\0\x02"[..], &bytes.to_be_bytes()].concat();
        head.resize(1000, b'x');
        let mut fed = head.len();
        assert_eq!(sieve.read(&mut &head[..], &wanted, &mut kept), Ok(false));
        let piece = vec![b'x'; 1 << 20];
        while fed < 6 + bytes as usize {
            let length = piece.len().min(6 + bytes as usize - fed);
            let read = sieve.read(&mut &piece[..length], &wanted, &mut kept);
            assert_eq!(read, Ok(false));
            fed += length;
        }
        assert_eq!(
            sieve.read(&mut &b"\0\0\0\x01y"[..], &wanted, &mut kept),
            Ok(true)
        );
        assert_eq!(kept, row(&[None, Some(b"y")]));
        let (column, bytes) = (0, bytes as usize);
        assert_eq!(sieve.omitted(), Some(OmittedValue { column, bytes }));
    }
}
