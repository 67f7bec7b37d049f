//! A terminal that nobody sits at but the test.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

use super::program::Output;
use super::wait_until;

/// A pseudo terminal.
pub struct Terminal {
    /// The user's side.
    keyboard: File,
    /// The program's side; held open, so that it does not end with the program.
    device: OwnedFd,
    screen: Output,
}

impl Terminal {
    pub fn new() -> Terminal {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)
            .and_then(|user_side| {
                grantpt(&user_side)?;
                unlockpt(&user_side)?;
                Ok(File::from(user_side))
            })
            .expect("the system has pseudo terminals");
        let device = ptsname(&keyboard, Vec::new())
            .and_then(|name| rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()))
            .expect("it is unlocked");
        let screen = Output::follow(keyboard.try_clone().expect("one descriptor more"));
        Terminal {
            keyboard,
            device,
            screen,
        }
    }

    /// For a program to be given.
    pub fn device(&self) -> Stdio {
        self.device.try_clone().expect("one descriptor more").into()
    }

    /// Types this once a program has written `prompt`.
    pub fn answer(&self, prompt: &str, text: &str) {
        wait_until(&format!("the terminal shows {prompt:?}"), || {
            self.screen.so_far().ends_with(prompt)
        });
        (&self.keyboard)
            .write_all(text.as_bytes())
            .expect("the terminal is there");
    }

    /// Whether it shows what is typed.
    pub fn echoes(&self) -> bool {
        let modes = tcgetattr(&self.device).expect("it is a terminal");
        modes.local_modes.contains(LocalModes::ECHO)
    }

    /// All that it has shown, when the program has ended.
    pub fn close(self) -> String {
        // Nobody has the device open any more, which ends the reading.
        drop(self.device);
        self.screen.all()
    }
}
