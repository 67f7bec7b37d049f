//! Instructions a transaction in user space, by callgrind. They hardly vary on a noisy machine.

use std::path::Path;
use std::process::{Command, Stdio};

/// Whether valgrind is installed.
pub fn can_be_counted() -> bool {
    Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Instructions that a program takes, all its threads together.
///
/// # Panics
/// If it fails under callgrind.
pub fn counted(command: &Command, directory: &Path) -> u64 {
    let out = directory.join("callgrind.out");
    let mut counting = Command::new("valgrind");
    counting
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for (name, value) in command.get_envs() {
        counting.env(name, value.unwrap_or_default());
    }
    if let Some(place) = command.get_current_dir() {
        counting.current_dir(place);
    }
    let status = counting.status().expect("valgrind is there");
    assert!(status.success(), "{command:?} failed under callgrind");
    let text = std::fs::read_to_string(&out).expect("callgrind writes it");
    let total = text.lines().find_map(|line| {
        line.strip_prefix("totals: ")
            .or(line.strip_prefix("summary: "))
    });
    total
        .and_then(|total| total.trim().parse().ok())
        .expect("callgrind tells the total")
}
