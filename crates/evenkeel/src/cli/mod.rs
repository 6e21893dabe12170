//! The command line: one shape for all commands, and what each one starts.

mod arguments;

pub use arguments::{
    Arguments, Command, ConfigArguments, ConfigCommand, DemoArguments, LayerArguments,
    RunArguments, StatusArguments,
};
