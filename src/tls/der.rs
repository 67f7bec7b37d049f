//! Just enough of DER to find one's way through a certificate: definite lengths, short tags. Bounds
//! are those of the slice; nothing is copied and nothing recurses.

/// What is left to read.
#[derive(Clone, Copy)]
pub(super) struct Der<'a>(&'a [u8]);

/// One element.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    /// With tag and length.
    pub whole: &'a [u8],
}

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The tag of a constructed element that is numbered instead of named, as in `[3]`.
pub(super) const fn numbered(number: u8) -> u8 {
    0xa0 | number
}

impl<'a> Der<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Der(bytes)
    }

    /// The next element if it has this tag; `None` at the end too, or if it is malformed.
    pub fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut ahead = *self;
        let element = ahead.next().filter(|element| element.tag == tag)?;
        *self = ahead;
        Some(element)
    }

    /// The content of the next element, as elements.
    pub fn enter(&mut self, tag: u8) -> Option<Der<'a>> {
        self.expect(tag).map(|element| Der(element.content))
    }

    /// A bit string that is made of whole bytes.
    pub fn bytes_of_bit_string(&mut self) -> Option<&'a [u8]> {
        self.expect(BIT_STRING)?.content.strip_prefix(&[0])
    }
}

impl<'a> Iterator for Der<'a> {
    type Item = Element<'a>;

    /// The next element, whatever it is.
    fn next(&mut self) -> Option<Element<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let mut length = usize::from(first);
        if first & 0x80 != 0 {
            let digits;
            // Three bytes of length are 16 MiB, more than any handshake message may hold.
            let count = usize::from(first & 0x7f);
            if !(1..=3).contains(&count) {
                return None;
            }
            (digits, rest) = rest.split_at_checked(count)?;
            length = digits
                .iter()
                .fold(0, |length, digit| length << 8 | usize::from(*digit));
        }
        let (content, after) = rest.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - after.len()];
        self.0 = after;
        Some(Element {
            tag,
            content,
            whole,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_follow_one_another() {
        let long = [&[OCTET_STRING, 0x81, 0x80][..], &[7; 128]].concat();
        let bytes = [&[SEQUENCE, 3, INTEGER, 1, 5][..], &long].concat();
        let mut der = Der::new(&bytes);
        assert!(der.expect(SET).is_none(), "a wrong tag is not passed over");
        let mut inner = der.enter(SEQUENCE).unwrap();
        assert_eq!(inner.expect(INTEGER).unwrap().content, [5]);
        assert!(inner.next().is_none());
        let string = der.expect(OCTET_STRING).unwrap();
        assert_eq!((string.content.len(), string.whole), (128, &long[..]));
        assert!(der.next().is_none());
    }

    #[test]
    fn what_is_malformed_ends_the_reading() {
        for bytes in [
            &[][..],
            &[SEQUENCE],
            &[SEQUENCE, 1],
            &[SEQUENCE, 0x80, 0, 0],
            &[SEQUENCE, 0x82, 1],
            &[SEQUENCE, 0x84, 0, 0, 0, 1, 9],
            &[SEQUENCE, 0x83, 0xff, 0xff, 0xff, 0],
        ] {
            assert!(Der::new(bytes).next().is_none(), "{bytes:?}");
        }
    }
}
