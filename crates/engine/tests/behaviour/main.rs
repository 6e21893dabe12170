//! What the engine promises, one behaviour per test.

mod catalog;
mod hostile;
mod marks;
mod removing;
mod reports;
mod restart;
mod results;
mod rig;
mod schedule;
mod writing;
