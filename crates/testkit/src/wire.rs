use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A relay between a client and a server, which a test cuts and mends.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    streams: Vec<TcpStream>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Through,
    Cut,
    Silent,
    Ended,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        let mut inner = self.lock();
        inner.state = state;
        if matches!(state, State::Cut | State::Ended) {
            for stream in inner.streams.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.changed.notify_all();
    }

    /// Waits while nothing gets through; false if what was to get through is lost.
    fn pass(&self) -> bool {
        let mut inner = self.lock();
        while inner.state == State::Silent {
            inner = self
                .changed
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
        inner.state == State::Through
    }
}

impl Wire {
    /// A free port whose connections lead to `target`.
    ///
    /// # Panics
    /// If it cannot listen.
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("{error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("{error}"));
        let shared = Arc::new(Shared::default());
        let relay = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                match relay.lock().state {
                    State::Ended => return,
                    // Closed at once.
                    State::Cut => continue,
                    State::Through | State::Silent => {}
                }
                let _ = connect(&relay, client, target);
            }
        });
        Self { address, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks all connections; those that are tried from now on are closed at once.
    pub fn cut(&self) {
        self.shared.set(State::Cut);
    }

    /// Lets nothing through, without a word to either side.
    pub fn hold(&self) {
        self.shared.set(State::Silent);
    }

    /// As in the beginning. What was held back arrives.
    pub fn mend(&self) {
        self.shared.set(State::Through);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.set(State::Ended);
        // Wakes it, so that its port is free.
        let _ = TcpStream::connect(self.address);
    }
}

fn connect(shared: &Arc<Shared>, client: TcpStream, target: SocketAddr) -> std::io::Result<()> {
    let server = TcpStream::connect(target)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        shared.lock().streams.push(stream.try_clone()?);
    }
    for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        let shared = Arc::clone(shared);
        std::thread::spawn(move || relay(&shared, from, to));
    }
    Ok(())
}

fn relay(shared: &Shared, mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if !shared.pass() || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Caller, Origin};

    #[test]
    fn what_is_held_back_arrives_and_what_is_cut_is_lost() {
        let origin = Origin::start("here", 1);
        let wire = Wire::to(origin.address());
        let address = wire.address().to_string();
        let mut caller = Caller::connect(&address);
        assert_eq!(caller.get("/"), (200, "here".to_owned()));
        wire.hold();
        let (tell, told) = std::sync::mpsc::channel();
        let asking = std::thread::spawn(move || {
            tell.send(()).unwrap();
            caller.get("/")
        });
        told.recv().unwrap();
        assert!(!asking.is_finished());
        wire.mend();
        assert_eq!(asking.join().unwrap(), (200, "here".to_owned()));
        wire.cut();
        let mut stream = TcpStream::connect(&address).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
        wire.mend();
        assert_eq!(Caller::connect(&address).get("/").0, 200);
    }
}
