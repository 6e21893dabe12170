//! Work that blocks, on files for instance.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How many threads there are at once. Those that hang, on a file system that
/// does not answer, must not become ever more.
static THREADS: Threads = Threads::new(512);

struct Threads {
    running: AtomicUsize,
    most: usize,
}

impl Threads {
    const fn new(most: usize) -> Self {
        Self {
            running: AtomicUsize::new(0),
            most,
        }
    }

    fn place(&'static self) -> io::Result<Place> {
        let place = Place(self);
        if self.running.fetch_add(1, Ordering::Relaxed) < self.most {
            return Ok(place);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    async fn run<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let place = self.place()?;
        let runtime = Handle::current();
        let (tell, told) = oneshot::channel();
        thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || {
                let _runtime = runtime.enter();
                let done = work();
                drop(place);
                let _ = tell.send(done);
            })?;
        told.await
            .map_err(|_| io::Error::other("the work ended early"))
    }
}

/// One of so many.
struct Place(&'static Threads);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Does `work` on a thread of its own, within the runtime. If nobody waits any
/// more, the work is done all the same and its result dropped there.
///
/// The runtime's own way panics where the system gives it no thread, as it does
/// when there are too many processes.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    THREADS.run(work).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn no_more_threads_than_stated_are_started() {
        static FEW: Threads = Threads::new(2);
        let (held, begun): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (open, opened) = mpsc::channel::<()>();
                // Until the other end is gone.
                (open, tokio::spawn(FEW.run(move || opened.recv().is_err())))
            })
            .unzip();
        while FEW.running.load(Ordering::Relaxed) < 2 {
            tokio::task::yield_now().await;
        }
        let refused = FEW.run(|| ()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(held);
        for one in begun {
            assert!(one.await.unwrap().unwrap());
        }
        assert_eq!(FEW.run(|| 5).await.unwrap(), 5);
        assert!(FEW.run(|| panic!("of the test")).await.is_err());
        assert_eq!(FEW.run(|| 6).await.unwrap(), 6);
    }
}
