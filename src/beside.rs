//! Work that may block for ever, done on a thread of its own that nobody waits for any longer than
//! he wants to.

use std::io;
use std::time::Duration;

use crossbeam_channel::bounded;

/// What `work` gives, or `None` if it has not been done within `bound`; its thread, called `name`, is
/// left to itself then.
///
/// # Errors
/// The system has no thread to give.
pub fn within<T: Send + 'static>(
    name: &str,
    bound: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (sender, done) = bounded(1);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _ = sender.send(work());
        })?;
    Ok(done.recv_timeout(bound).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_given_and_what_blocks_is_left() {
        let minute = Duration::from_secs(60);
        assert_eq!(within("quick", minute, || 7).unwrap(), Some(7));
        let (_never, blocked) = bounded::<()>(0);
        let left = within("blocked", Duration::ZERO, move || blocked.recv());
        assert_eq!(left.unwrap(), None);
    }
}
