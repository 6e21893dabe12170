//! The crate from outside, as a tool that compares strategies uses it.
#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

mod advice;
mod drawing;
mod model;
mod reading;
mod replaying;
mod robustness;
mod support;
mod writes;
