use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a connection may stay. One that waits for a change gives its place to
/// others, so that clients who wait keep nobody from asking whether the daemon
/// lives.
#[derive(Debug)]
pub(super) struct Stay {
    place: Mutex<Option<OwnedSemaphorePermit>>,
    waiting: Arc<Semaphore>,
    long: AtomicBool,
}

impl Stay {
    /// A short stay on `place`, which may become a long one on a place of
    /// `waiting`.
    pub(super) fn new(place: Option<OwnedSemaphorePermit>, waiting: Arc<Semaphore>) -> Self {
        Self {
            place: Mutex::new(place),
            waiting,
            long: AtomicBool::new(false),
        }
    }

    /// Makes it a long one, if there is a place to wait on.
    pub(super) fn lengthen(&self) -> bool {
        let Ok(waiting) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return false;
        };
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(waiting);
        self.long.store(true, Ordering::Relaxed);
        true
    }

    /// Whether it is a long one.
    pub(super) fn is_long(&self) -> bool {
        self.long.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_waits_gives_its_place_to_others() {
        let (places, waiting) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
        let stay = |places: &Arc<Semaphore>| {
            let place = Arc::clone(places).try_acquire_owned().ok();
            Stay::new(place, Arc::clone(&waiting))
        };
        let first = stay(&places);
        assert_eq!(places.available_permits(), 0);
        assert!(first.lengthen() && first.is_long());
        assert_eq!(places.available_permits(), 1);
        let second = stay(&places);
        assert!(!second.lengthen() && !second.is_long());
        assert_eq!(places.available_permits(), 0);
        drop(first);
        assert!(second.lengthen());
    }
}
