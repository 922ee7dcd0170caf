//! The time of a flush, the futures that wait for it, and the effect of a failure.

use std::sync::{
    atomic::{AtomicUsize, Ordering},
    mpsc::{Receiver, Sender, channel},
};

use super::*;

/// A disk that reports a flush and blocks it until it is released.
struct SlowDisk {
    asked: Receiver<()>,
    go_on: Sender<io::Result<()>>,
}

fn slow_disk() -> (BackgroundFlusher, SlowDisk) {
    let (asking, asked) = channel();
    let (go_on, told) = channel();
    let told = Mutex::new(told);
    let operation = Box::new(move || {
        asking.send(()).unwrap();
        told.lock().unwrap().recv().unwrap()
    });
    (BackgroundFlusher::new(operation), SlowDisk { asked, go_on })
}

/// Waits for a flush on this thread.
fn wait(mut pending: PendingFlush) -> Result<(), io::ErrorKind> {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    loop {
        match Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(flushed) => return flushed,
            Poll::Pending => thread::park(),
        }
    }
}

fn is_ready(pending: &mut PendingFlush) -> bool {
    Pin::new(pending).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn whoever_waits_goes_on_after_the_flush_and_not_before() {
    let (mut flusher, disk) = slow_disk();
    flusher.count_record().unwrap();
    let mut pending = flusher.flush();
    disk.asked.recv().unwrap();
    assert!(!is_ready(&mut pending));
    disk.go_on.send(Ok(())).unwrap();
    assert_eq!(wait(pending), Ok(()));
}

#[test]
fn one_flush_serves_all_that_was_written_before_it() {
    let (mut flusher, disk) = slow_disk();
    flusher.count_record().unwrap();
    let first = flusher.flush();
    disk.asked.recv().unwrap();
    let mut later = Vec::new();
    for _ in 0..16 {
        flusher.count_record().unwrap();
        later.push(flusher.flush());
    }
    disk.go_on.send(Ok(())).unwrap();
    assert_eq!(wait(first), Ok(()));
    assert!(!is_ready(&mut later[0]), "its record was written while the first flush was under way");
    disk.asked.recv().unwrap();
    disk.go_on.send(Ok(())).unwrap();
    assert!(later.into_iter().all(|pending| wait(pending) == Ok(())));
    assert!(disk.asked.try_recv().is_err());
}

#[test]
fn without_new_records_there_is_nothing_to_wait_for() {
    let (mut flusher, disk) = slow_disk();
    assert!(is_ready(&mut flusher.flush()));
    flusher.count_record().unwrap();
    let pending = flusher.flush();
    disk.go_on.send(Ok(())).unwrap();
    assert_eq!(wait(pending), Ok(()));
    assert!(is_ready(&mut flusher.flush()));
}

#[test]
fn what_nobody_waits_for_is_flushed_in_a_while() {
    let (mut flusher, disk) = slow_disk();
    disk.go_on.send(Ok(())).unwrap();
    let began = Instant::now();
    flusher.count_record().unwrap();
    disk.asked.recv().unwrap();
    assert!(began.elapsed() >= MAX_DIRTY_TIME);
}

#[test]
fn a_file_that_is_closed_is_flushed_unless_it_is() {
    let count = Arc::new(AtomicUsize::new(0));
    let flusher = || {
        let counted = Arc::clone(&count);
        BackgroundFlusher::new(Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }))
    };
    drop(flusher());
    assert_eq!(count.load(Ordering::SeqCst), 0);
    let mut dirty = flusher();
    dirty.count_record().unwrap();
    drop(dirty);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn after_a_failed_flush_nothing_is_written_any_more() {
    let (mut flusher, disk) = slow_disk();
    flusher.count_record().unwrap();
    let pending = flusher.flush();
    disk.go_on.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
    assert_eq!(wait(pending), Err(io::ErrorKind::StorageFull));
    assert_eq!(flusher.count_record().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(wait(flusher.flush()), Err(io::ErrorKind::StorageFull));
}
