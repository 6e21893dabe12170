//! Blocking queries by the rules of Consul's documentation, as a state machine
//! without a clock: time is an argument, in milliseconds on the caller's
//! clock, and the jitter comes from a seed.
//!
//! A blocking query names the index of the last answer and is answered when
//! there is a newer one, or when the wait is over. What goes wrong with them
//! in practice, and what [`Watch`] does about it:
//!
//! | what | rule |
//! |---|---|
//! | the index goes backwards (a restored or new server) | ask once without an index |
//! | the index is 0 or missing | wait for 1, and ask at most every [`Rules::unindexed_gap`] |
//! | answers come at once without anything new | the gap doubles, up to [`Rules::unindexed_gap`] |
//! | our own writes wake us all the time | a gap between reads: at least [`Rules::least_gap`], and [`Rules::load_factor`] times as long as a read takes |
//! | the connection dies without a word | every query has a wait, and the client a deadline: [`deadline`] |
//! | errors | [`Backoff`]: 1 s to 60 s, jittered; `Retry-After` is obeyed; the last data stay |
//! | the server may have been replaced during an error | the next query names no index |
//! | long polls always fail, plain reads work (a proxy's timeout) | plain reads go on at the pace of the back-off |
//!
//! ```
//! use evenkeel_consul::blocking::{Rules, Step, Watch};
//! use evenkeel_consul::Meta;
//!
//! let mut watch = Watch::new(Rules::default(), 42);
//! // The first read does not wait.
//! let Step::Ask(ask) = watch.step(0) else { panic!() };
//! assert_eq!(ask.index, None);
//! let news = watch.answered(5, &Meta { index: Some(7), ..Meta::default() });
//! assert!(news.changed);
//! // A second later the next one waits for something newer.
//! assert_eq!(watch.step(5), Step::Wait(1_005));
//! let Step::Ask(ask) = watch.step(1_005) else { panic!() };
//! assert_eq!(ask.index, Some(7));
//! ```

mod backoff;
mod watch;

pub use backoff::{Backoff, Retry};
pub use watch::{Ask, News, Rules, Step, Watch};

use std::time::Duration;

/// What the server waits when a blocking query does not say (Consul's
/// documentation: 5 minutes).
const DEFAULT_WAIT: Duration = Duration::from_secs(300);

/// The longest wait a server accepts (Consul's documentation: 10 minutes).
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// How long an answer may take beyond what the server waits: 10 s to come over
/// and to be decoded.
pub const MARGIN: Duration = Duration::from_secs(10);

/// How long to wait for a blocking query's answer before the connection counts
/// as dead: the server adds up to a sixteenth of the wait, and then comes
/// [`MARGIN`]. (P017, P158)
///
/// ```
/// use evenkeel_consul::blocking::deadline;
/// use std::time::Duration;
///
/// // The server may take 5 min + 18.75 s.
/// assert!(deadline(Some(Duration::from_secs(300))) > Duration::from_millis(318_750));
/// ```
pub fn deadline(wait: Option<Duration>) -> Duration {
    let wait = wait.unwrap_or(DEFAULT_WAIT).min(LONGEST_WAIT);
    wait + wait / 16 + MARGIN
}
