//! A session file whose calls enter the index while the session goes on, by a thread that nobody waits for.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use windlass_contract::{
    BoxFuture, Journal,
    journal::{JournalError, Record},
};

use super::{Calls, CallsError, Keep};
use crate::{Folder, SessionFile, Trouble};

/// How long the thread waits for others. At the end of a session the session waits with it.
const PATIENCE: Duration = Duration::from_secs(1);

/// A session file that is followed. With the first call that ends, a thread opens the index and reads the file, then again
/// after every further one, and for the last time when this is dropped, which waits for that. What goes wrong is told once, and
/// costs the session nothing: the file is read on the next occasion.
pub struct Followed {
    file: SessionFile,
    follower: Mutex<Follower>,
}

enum Follower {
    /// No call has ended yet: a session without calls does not cost an open database.
    Waiting(Option<Box<Work>>),
    Running {
        poke: SyncSender<()>,
        stopping: Arc<AtomicBool>,
        thread: JoinHandle<()>,
    },
}

struct Work {
    home: PathBuf,
    keep: Keep,
    path: PathBuf,
    trouble: Trouble,
}

impl Followed {
    /// Follows a session of this home directory.
    pub fn new(file: SessionFile, home: &Path, keep: Keep, trouble: Trouble) -> Self {
        let work = Work { home: home.to_owned(), keep, path: file.path().to_owned(), trouble };
        Self { file, follower: Mutex::new(Follower::Waiting(Some(Box::new(work)))) }
    }

    fn poke(&self) {
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        if let Follower::Waiting(work) = &mut *follower
            && let Some(work) = work.take()
        {
            *follower = work.start();
        }
        if let Follower::Running { poke, .. } = &*follower {
            // Full means that it will look anyway, and gone that it has told why.
            let _known = poke.try_send(());
        }
    }
}

impl Journal for Followed {
    fn append(&self, record: &Record<'_>) -> Result<(), JournalError> {
        self.file.append(record)?;
        if matches!(record, Record::Outcome { .. }) {
            self.poke();
        }
        Ok(())
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), JournalError>> {
        self.file.flush()
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let follower = self.follower.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Follower::Running { poke, stopping, thread } =
            std::mem::replace(follower, Follower::Waiting(None))
        {
            stopping.store(true, Ordering::Relaxed);
            drop(poke);
            // It does not panic, and if it did, there would be nothing to do about it here.
            let _ended = thread.join();
        }
    }
}

impl fmt::Debug for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Work {
    fn start(self) -> Follower {
        let (poke, poked) = sync_channel(1);
        let stopping = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stopping);
        match thread::Builder::new().name("calls".to_owned()).spawn(move || self.run(&poked, &seen)) {
            Ok(thread) => Follower::Running { poke, stopping, thread },
            // A machine without room for a thread has other worries; the file is read next time.
            Err(_) => Follower::Waiting(None),
        }
    }

    fn run(self, poked: &Receiver<()>, stopping: &AtomicBool) {
        if let Err(error) = self.follow(poked, stopping) {
            (self.trouble)(error.to_string());
        }
    }

    fn follow(&self, poked: &Receiver<()>, stopping: &AtomicBool) -> Result<(), CallsError> {
        let mut calls = Calls::open_within(&self.home, self.keep, PATIENCE)?;
        self.read(&mut calls)?;
        // Whatever other sessions have left unread, as when they were killed. It may end at any time.
        calls.catch_up_while(|| !stopping.load(Ordering::Relaxed))?;
        while poked.recv().is_ok() {
            match self.read(&mut calls) {
                // Perhaps it is free when the next call ends, or at the end.
                Err(CallsError::Locked { .. }) => {}
                read => read?,
            }
        }
        // What was written after the last call belongs to the end that is remembered.
        self.read(&mut calls)
    }

    fn read(&self, calls: &mut Calls) -> Result<(), CallsError> {
        let thread = self.path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        calls.read(Folder::Sessions, thread, &self.path)
    }
}
