use core::fmt;

/// Hosts that cannot be taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputError {
    /// A host's weight must be at least 1, as in Envoy's
    /// `LbEndpoint.load_balancing_weight`.
    ZeroWeight,
    /// A priority above [`MAX_PRIORITY`](crate::MAX_PRIORITY).
    Priority(u32),
    /// Hosts or weights of a priority add up to more than 64 bits hold.
    TooMany,
    /// More hosts are to be removed than there are.
    NotThere,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroWeight => f.write_str("a host's weight is 0; it must be at least 1"),
            Self::Priority(priority) => write!(
                f,
                "priority {priority} is above the highest, {}",
                crate::MAX_PRIORITY
            ),
            Self::TooMany => {
                f.write_str("hosts or weights of one priority add up to more than 64 bits hold")
            }
            Self::NotThere => f.write_str("more hosts are to be removed than there are"),
        }
    }
}

impl core::error::Error for InputError {}
