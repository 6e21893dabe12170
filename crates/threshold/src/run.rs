use crate::payload::{Fields, Flags};
use crate::{FirstResult, Record, RestartReason, Status, StrategyTag, Transition};

/// What [`Consecutive`](crate::Consecutive) and [`Consul`](crate::Consul)
/// remember of one check: how many results in a row were of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunState {
    pub(crate) run: u32,
    /// The latest result that is in `run`.
    pub(crate) latest: Status,
    pub(crate) reported: Status,
    /// The next result is the first one, and is to be believed.
    pub(crate) believe_next: bool,
}

impl RunState {
    pub(crate) fn start(reported: Status, first: FirstResult) -> Self {
        Self {
            believe_next: first == FirstResult::Believed,
            ..Self::settled(reported)
        }
    }

    pub(crate) const fn settled(reported: Status) -> Self {
        Self {
            run: 0,
            latest: reported,
            reported,
            believe_next: false,
        }
    }

    /// The status reported now.
    pub const fn reported(&self) -> Status {
        self.reported
    }

    pub(crate) const fn awaits_first_result(&self) -> bool {
        self.believe_next
    }

    /// Reports `to`; the run is left as it is.
    #[inline]
    pub(crate) fn report(&mut self, to: Status) -> Option<Transition> {
        let from = core::mem::replace(&mut self.reported, to);
        Transition::between(from, to)
    }

    pub(crate) fn save(&self, tag: StrategyTag, version: u8) -> Record {
        let mut payload = [0; 6];
        payload[0] = Flags::new(self.believe_next).0;
        payload[1] = self.latest as u8;
        payload[2..].copy_from_slice(&self.run.to_le_bytes());
        Record::with_payload(tag, version, self.reported, payload)
    }

    /// The state in `record`, if strategy `tag` wrote it in format `version`.
    pub(crate) fn load(
        record: &Record,
        tag: StrategyTag,
        version: u8,
    ) -> Result<Self, RestartReason> {
        let payload = record.expect_version(tag, version)?;
        Self::read(payload, record.reported()).ok_or(RestartReason::Damaged)
    }

    fn read(payload: &[u8], reported: Status) -> Option<Self> {
        let mut fields = Fields(payload);
        let believe_next = fields.flags()?.believe_next();
        let latest = fields.status()?;
        let run = fields.u32()?;
        fields.end()?;
        (!believe_next || run == 0).then_some(Self {
            run,
            latest,
            reported,
            believe_next,
        })
    }
}
