//! How late a bare timer descriptor fires on this machine: the least that a schedule can lag.

use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::os::fd::AsRawFd;

/// Fires `rate` times a second for some seconds, and prints the 99th percentile of its lateness in
/// microseconds.
pub fn run(rate: u32, seconds: u32) -> std::io::Result<()> {
    let timer = timerfd_create(
        TimerfdClockId::Monotonic,
        TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
    )?;
    let mut poll = Poll::new()?;
    let source = timer.as_raw_fd();
    poll.registry()
        .register(&mut SourceFd(&source), Token(0), Interest::READABLE)?;
    let mut events = Events::with_capacity(8);
    let gap = Duration::from_secs(1) / rate;
    let start = Instant::now();
    let mut late: Vec<Duration> = Vec::new();
    for shot in 1..=rate * seconds {
        let due = start + gap * shot;
        let left = due.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            let once = Itimerspec {
                it_interval: Timespec::default(),
                it_value: Timespec::try_from(left).expect("less than a second"),
            };
            timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
            poll.poll(&mut events, None)?;
        }
        late.push(Instant::now().saturating_duration_since(due));
    }
    late.sort();
    println!("{}", late[late.len() * 99 / 100].as_micros());
    Ok(())
}
