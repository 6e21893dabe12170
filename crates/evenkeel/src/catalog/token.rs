use evenkeel_consul::write::WriteForm;

/// What a catalog needs back to write a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// An entry of Consul's catalog.
    Consul {
        /// Goes up when Consul's indexes start anew, as after a restore from a
        /// backup.
        epoch: u32,
        /// The entry's `ModifyIndex`.
        index: u64,
        /// How it is written.
        form: WriteForm,
    },
    /// An entry of a file: nothing is written back.
    File,
}

impl evenkeel_engine::Token for Token {
    fn is_older_than(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Consul { epoch, index, .. },
                Self::Consul {
                    epoch: other_epoch,
                    index: other_index,
                    ..
                },
            ) => (epoch, index) < (other_epoch, other_index),
            _ => false,
        }
    }

    fn keeps_status(&self) -> bool {
        matches!(self, Self::Consul { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_engine::Token as _;

    fn token(epoch: u32, index: u64) -> Token {
        Token::Consul {
            epoch,
            index,
            form: WriteForm::Register,
        }
    }

    #[test]
    fn the_epoch_goes_before_the_index() {
        assert!(token(0, 5).is_older_than(&token(0, 6)));
        assert!(!token(0, 5).is_older_than(&token(0, 5)));
        assert!(token(0, 900).is_older_than(&token(1, 3)));
        assert!(!token(1, 3).is_older_than(&token(0, 900)));
    }

    #[test]
    fn a_file_has_no_age_and_keeps_no_status() {
        assert!(!Token::File.is_older_than(&Token::File));
        assert!(!Token::File.keeps_status());
        assert!(token(0, 1).keeps_status());
    }
}
