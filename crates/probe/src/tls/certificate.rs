//! What is read of a certificate beside its verification: when it ends, and
//! whose it is.

use std::time::Duration;

use der::asn1::{AnyRef, GeneralizedTime, UtcTime};
use der::{DateTime, Reader as _, SliceReader, Tag};

use crate::capture::line;

/// The fields of interest (RFC 5280 section 4.1). No more of the certificate is
/// looked at, so that one that is strange elsewhere can be read.
pub(super) struct Parsed<'a> {
    /// The content of the name.
    pub(super) issuer: &'a [u8],
    pub(super) subject: &'a [u8],
    /// In seconds since 1970.
    pub(super) not_after: u64,
}

impl<'a> Parsed<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut whole = SliceReader::new(bytes).ok()?;
        let mut certificate = inside(&mut whole, Tag::Sequence)?;
        let mut fields = inside(&mut certificate, Tag::Sequence)?;
        // The version, which the first one leaves out, or the serial number.
        if next(&mut fields)?.header().tag() != Tag::Integer {
            next(&mut fields)?;
        }
        let _algorithm = next(&mut fields)?;
        let issuer = next(&mut fields)?.value();
        let mut validity = inside(&mut fields, Tag::Sequence)?;
        let _not_before = next(&mut validity)?;
        let not_after = seconds(next(&mut validity)?)?;
        let subject = next(&mut fields)?.value();
        Some(Self {
            issuer,
            subject,
            not_after,
        })
    }
}

fn next<'a>(reader: &mut SliceReader<'a>) -> Option<AnyRef<'a>> {
    reader.decode().ok()
}

fn inside<'a>(reader: &mut SliceReader<'a>, tag: Tag) -> Option<SliceReader<'a>> {
    let any = next(reader)?;
    (any.header().tag() == tag).then_some(())?;
    SliceReader::new(any.value()).ok()
}

fn seconds(time: AnyRef<'_>) -> Option<u64> {
    let since_1970 = match time.header().tag() {
        Tag::UtcTime => time.decode_as::<UtcTime>().ok()?.to_unix_duration(),
        _ => time.decode_as::<GeneralizedTime>().ok()?.to_unix_duration(),
    };
    Some(since_1970.as_secs())
}

/// The first common name in the content of a name, on one line and not long.
pub(super) fn common_name(name: &[u8]) -> Option<String> {
    /// `id-at-commonName`, 2.5.4.3.
    const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    let mut parts = SliceReader::new(name).ok()?;
    while let Some(mut attributes) = inside(&mut parts, Tag::Set) {
        while let Some(mut attribute) = inside(&mut attributes, Tag::Sequence) {
            if next(&mut attribute)?.value() == COMMON_NAME {
                let text = String::from_utf8_lossy(next(&mut attribute)?.value());
                return Some(line(&text).into_owned());
            }
        }
    }
    None
}

/// A time as RFC 3339 has it.
pub(super) fn date(seconds: u64) -> String {
    match DateTime::from_unix_duration(Duration::from_secs(seconds)) {
        Ok(date) => date.to_string(),
        // After the year 9999.
        Err(_) => format!("{seconds} seconds after 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    fn made(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "o");
        params
            .distinguished_name
            .push(DnType::CommonName, "it\nself");
        params.not_after = date_time_ymd(year, 2, 3);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    /// `date -u -d 2031-02-03 +%s` and the like. RFC 5280 has two forms of a
    /// time, before 2050 and after.
    #[test]
    fn the_end_is_read_in_both_forms() {
        for (year, seconds, text) in [
            (1999, 918_000_000, "1999-02-03T00:00:00Z"),
            (2031, 1_927_843_200, "2031-02-03T00:00:00Z"),
            (2051, 2_558_995_200, "2051-02-03T00:00:00Z"),
            (9999, 253_373_616_000, "9999-02-03T00:00:00Z"),
        ] {
            let bytes = made(year);
            let parsed = Parsed::of(&bytes).unwrap();
            assert_eq!(parsed.not_after, seconds, "{year}");
            assert_eq!(date(seconds), text);
            assert_eq!(parsed.issuer, parsed.subject);
            assert_eq!(common_name(parsed.subject).as_deref(), Some("it self"));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Parsed::of(&bytes);
            let _ = common_name(&bytes);
        }

        #[test]
        fn no_change_of_a_certificate_is_a_fault(
            at in 0..400_usize,
            to in any::<u8>(),
            cut in 0..500_usize,
        ) {
            static MADE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| made(2031));
            let mut bytes = MADE.clone();
            let at = at % bytes.len();
            bytes[at] = to;
            bytes.truncate(cut);
            if let Some(parsed) = Parsed::of(&bytes) {
                let _ = common_name(parsed.subject);
            }
        }
    }
}
