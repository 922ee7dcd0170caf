//! Modes of the terminal: switched on for a session, and restored by whichever thread ends it.

use std::{
    io::{self, Write},
    os::fd::AsFd,
    panic,
    sync::{
        Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    thread::{self, ThreadId},
};

use crossterm::{
    cursor, event,
    event::KeyboardEnhancementFlags,
    queue,
    style::ResetColor,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen},
};
use rustix::{
    fs::{Mode, OFlags},
    termios::{OptionalActions, QueueSelector, Termios, tcgetattr, tcsetattr},
};

use crate::session::Display;

/// The modes that are on, for the one place that switches them off: 0 for none. A panic or a signal
/// has no access to anything else.
static MODES: AtomicU8 = AtomicU8::new(0);
const SEQUENCES: u8 = 1;
const KEYBOARD: u8 = 2;
const ALTERNATE: u8 = 4;

/// Aborts an escape sequence that was cut off (ECMA-48: CAN).
const CANCEL: u8 = 0x18;

/// The settings of the line discipline before the session, while they are changed.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Set while another program has the terminal. Its Ctrl-C is not for the session.
static LENT: AtomicBool = AtomicBool::new(false);

/// The thread that draws.
static OWNER: Mutex<Option<ThreadId>> = Mutex::new(None);

fn before() -> MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets keys arrive one by one and without echo. May be called again, for a shell may have changed
/// the modes while the session was stopped.
pub(super) fn enter_raw() -> io::Result<()> {
    let stdin = io::stdin();
    let mut before = before();
    let mut raw = match &*before {
        Some(modes) => modes.clone(),
        None => before.insert(tcgetattr(&stdin)?).clone(),
    };
    raw.make_raw();
    Ok(tcsetattr(&stdin, OptionalActions::Now, &raw)?)
}

/// Switches the emulator to the modes of a session.
pub(super) fn enter(display: Display) -> io::Result<()> {
    let mut bytes = Vec::new();
    if display == Display::Fullscreen {
        MODES.fetch_or(ALTERNATE, Ordering::SeqCst);
        queue!(bytes, EnterAlternateScreen, event::EnableMouseCapture)?;
    }
    let was_on = MODES.fetch_or(SEQUENCES | KEYBOARD, Ordering::SeqCst);
    queue!(bytes, event::EnableBracketedPaste)?;
    // Emulators keep a stack of these flags for each screen, so they come after the change of
    // screens and only once. Terminals that do not know them ignore them. They tell Shift-Enter
    // from Enter.
    if was_on & KEYBOARD == 0 {
        let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES;
        queue!(bytes, event::PushKeyboardEnhancementFlags(flags))?;
    }
    let mut stdout = io::stdout();
    stdout.write_all(&bytes)?;
    stdout.flush()
}

/// Returns the sequences that switch off all modes that are on, and forgets them.
fn take_ending() -> Vec<u8> {
    let modes = MODES.swap(0, Ordering::SeqCst);
    let mut bytes = Vec::new();
    // A vector takes everything.
    if modes & KEYBOARD != 0 {
        let _written = queue!(bytes, event::PopKeyboardEnhancementFlags);
    }
    if modes & ALTERNATE != 0 {
        let _written = queue!(bytes, event::DisableMouseCapture, LeaveAlternateScreen);
    }
    if modes & SEQUENCES != 0 {
        let _written = queue!(bytes, event::DisableBracketedPaste, ResetColor, cursor::Show);
    }
    bytes
}

fn restore_line_discipline() {
    if let Some(modes) = before().take() {
        // If the terminal is gone, there is nothing to restore.
        let _gone = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }
}

/// Switches off all modes that are on. May be called at any time, and more than once.
pub(super) fn restore() {
    restore_line_discipline();
    // Not through the buffer of the standard library: the code that panicked may have borrowed it.
    let (stdout, bytes) = (io::stdout(), take_ending());
    let mut rest = &bytes[..];
    while let (false, Ok(count @ 1..)) = (rest.is_empty(), rustix::io::write(&stdout, rest)) {
        rest = &rest[count..];
    }
}

/// Returns true while another program has the terminal.
pub(crate) fn is_lent_to_program() -> bool {
    LENT.load(Ordering::SeqCst)
}

/// Does something during which another program has the terminal.
pub(crate) fn lent_to_program<T>(work: impl FnOnce() -> T) -> T {
    LENT.store(true, Ordering::SeqCst);
    let result = work();
    LENT.store(false, Ordering::SeqCst);
    result
}

/// Throws away what the terminal has not read. A thread that waits for it to read goes on.
pub(crate) fn discard_unread() {
    let _gone = rustix::termios::tcflush(io::stdout().as_fd(), QueueSelector::OFlush);
}

/// Restores as much as is possible without waiting for the terminal, whatever other threads do.
pub(crate) fn restore_without_waiting() {
    restore_line_discipline();
    let mut bytes = vec![CANCEL];
    bytes.extend(take_ending());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if let Ok(terminal) = rustix::fs::open("/dev/tty", flags, Mode::empty()) {
        // What does not fit is lost.
        let _written = rustix::io::write(&terminal, &bytes);
    }
}

/// A panic of this thread is reported on a terminal that shows it. A tool that panics on another
/// thread ends its call, not the session.
pub(super) fn restore_on_panic() {
    static ONCE: Once = Once::new();
    let owner = || OWNER.lock().unwrap_or_else(PoisonError::into_inner);
    *owner() = Some(thread::current().id());
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if *owner() == Some(thread::current().id()) {
                restore();
            }
            report(info);
        }));
    });
}
