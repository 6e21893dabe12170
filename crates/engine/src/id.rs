use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Who a check is: partition, namespace, node, service id and check id.
///
/// All five parts make the identity; the same service id on two nodes, or the
/// same ids in two namespaces, are different checks. A part that a catalog does
/// not have, or that is its default, is the empty text. A check of a node
/// rather than a service has an empty service id.
///
/// Cloning copies a pointer.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CheckId(Arc<Parts>);

#[derive(PartialEq, Eq, Hash)]
struct Parts {
    /// The five parts, one after the other.
    text: Box<str>,
    /// Where the first four parts end.
    ends: [usize; 4],
}

impl CheckId {
    /// The identity made of these parts.
    pub fn new(
        partition: &str,
        namespace: &str,
        node: &str,
        service_id: &str,
        check_id: &str,
    ) -> Self {
        let parts = [partition, namespace, node, service_id, check_id];
        let mut ends = [0; 4];
        let mut end = 0;
        for (slot, part) in ends.iter_mut().zip(parts) {
            end += part.len();
            *slot = end;
        }
        Self(Arc::new(Parts {
            text: parts.concat().into_boxed_str(),
            ends,
        }))
    }

    /// The admin partition; empty for the default one.
    pub fn partition(&self) -> &str {
        self.part(0)
    }

    /// The namespace; empty for the default one.
    pub fn namespace(&self) -> &str {
        self.part(1)
    }

    /// The node's name.
    pub fn node(&self) -> &str {
        self.part(2)
    }

    /// The service's id; empty for a check of the node.
    pub fn service_id(&self) -> &str {
        self.part(3)
    }

    /// The check's id.
    pub fn check_id(&self) -> &str {
        self.part(4)
    }

    /// The identity of the service that the check belongs to: the same without
    /// a check id. `None` for a check of the node.
    pub(crate) fn service(&self) -> Option<Self> {
        let service = self.service_id();
        (!service.is_empty())
            .then(|| Self::new(self.partition(), self.namespace(), self.node(), service, ""))
    }

    fn part(&self, number: usize) -> &str {
        let Parts { text, ends } = &*self.0;
        let start = number.checked_sub(1).map_or(0, |before| ends[before]);
        let end = ends.get(number).copied().unwrap_or(text.len());
        &text[start..end]
    }

    fn parts(&self) -> [&str; 5] {
        [0, 1, 2, 3, 4].map(|number| self.part(number))
    }
}

impl Ord for CheckId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl PartialOrd for CheckId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `node/service/check`, with `partition/namespace/` in front where either is
/// not the default. For people: a part that has a slash in it makes the text
/// ambiguous, and control characters are escaped as in Rust's literals, so that
/// a name from the catalog can neither begin a line of a log nor speak to a
/// terminal.
impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [partition, namespace, node, service, check] = self.parts().map(Escaped);
        let [partition_is_default, namespace_is_default] =
            [self.partition(), self.namespace()].map(str::is_empty);
        if !partition_is_default || !namespace_is_default {
            write!(f, "{partition}/{namespace}/")?;
        }
        write!(f, "{node}/{service}/{check}")
    }
}

/// A part with its control characters escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Also what text editors and terminals take for the end of a line, and what
        // turns the direction of writing.
        let harmful = |c: char| {
            c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let mut rest = self.0;
        while let Some(at) = rest.find(harmful) {
            let (plain, from) = rest.split_at(at);
            f.write_str(plain)?;
            let mut chars = from.chars();
            for c in chars.by_ref().take(1) {
                write!(f, "{}", c.escape_default())?;
            }
            rest = chars.as_str();
        }
        f.write_str(rest)
    }
}

impl fmt::Debug for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_as_given() {
        let id = CheckId::new("p", "", "nöde", "web", "web:1");
        assert_eq!(id.parts(), ["p", "", "nöde", "web", "web:1"]);
        assert_eq!(id.to_string(), "p//nöde/web/web:1");
        assert_eq!(CheckId::new("", "", "n", "", "c").to_string(), "n//c");
    }

    #[test]
    fn control_characters_are_escaped_for_people_only() {
        let id = CheckId::new(
            "",
            "",
            "n\n2026 ERROR",
            "\u{1b}[31mwöb\u{202e}",
            "c\r\0\u{9b}",
        );
        assert_eq!(
            id.to_string(),
            r"n\n2026 ERROR/\u{1b}[31mwöb\u{202e}/c\r\u{0}\u{9b}"
        );
        assert_eq!(id.node(), "n\n2026 ERROR");
        assert_eq!(id.check_id(), "c\r\0\u{9b}");
        assert!(!format!("{id:?}").contains(char::is_control));
        let id = CheckId::new("p\t", "", "n", "", "c");
        assert_eq!(id.to_string(), r"p\t//n//c");
    }

    // P039
    #[test]
    fn every_part_counts() {
        let base = CheckId::new("", "", "a", "web", "c");
        assert_ne!(base, CheckId::new("", "", "b", "web", "c"));
        assert_ne!(base, CheckId::new("", "ns", "a", "web", "c"));
        assert_ne!(base, CheckId::new("pt", "", "a", "web", "c"));
        // The same letters, split elsewhere.
        assert_ne!(base, CheckId::new("", "", "aw", "eb", "c"));
        assert_ne!(base, CheckId::new("", "", "a", "we", "bc"));
        assert_eq!(base, CheckId::new("", "", "a", "web", "c"));
    }

    #[test]
    fn order_is_by_part() {
        let mut ids = [
            CheckId::new("", "", "b", "", ""),
            CheckId::new("", "", "ab", "", ""),
            CheckId::new("", "", "a", "c", ""),
        ];
        ids.sort();
        let nodes = ids.each_ref().map(CheckId::node);
        assert_eq!(nodes, ["a", "ab", "b"]);
    }

    #[test]
    fn a_node_check_has_no_service() {
        assert_eq!(CheckId::new("", "", "n", "", "c").service(), None);
        assert_eq!(
            CheckId::new("", "ns", "n", "s", "c").service(),
            CheckId::new("", "ns", "n", "s", "d").service(),
        );
    }
}
