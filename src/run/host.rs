//! What the kernel tells of the machine that the program runs on.

use std::fs;

use crate::result::Host;

/// Times of all processors since the machine was started, in the kernel's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessorTimes {
    all: u64,
    stolen: u64,
}

impl ProcessorTimes {
    /// Up to now; `None` where the kernel does not tell.
    pub(super) fn now() -> Option<Self> {
        ProcessorTimes::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// User, nice, system, idle, iowait, irq, softirq, steal; those of guests are in user and nice.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Option<Vec<u64>> = line
            .split_whitespace()
            .take(8)
            .map(|time| time.parse().ok())
            .collect();
        let times = times?;
        Some(ProcessorTimes {
            all: times.iter().sum(),
            stolen: *times.get(7)?,
        })
    }

    /// Share of the time from `self` to `later` that a hypervisor gave to others, percent.
    pub(super) fn steal_pct(self, later: ProcessorTimes) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all > 0)?;
        let stolen = later.stolen.checked_sub(self.stolen)?;
        Some(stolen as f64 * 100.0 / all as f64)
    }
}

/// Mean frequency of the processors now, MHz; `None` where the kernel does not tell.
pub(super) fn frequency_mhz() -> Option<f64> {
    mean_frequency(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

fn mean_frequency(cpuinfo: &str) -> Option<f64> {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let frequencies: Vec<f64> = fields
        .filter(|(name, _)| name.trim() == "cpu MHz")
        .filter_map(|(_, value)| value.trim().parse().ok())
        .collect();
    let sum: f64 = frequencies.iter().sum();
    (sum > 0.0).then(|| sum / frequencies.len() as f64)
}

/// The machine, but for what happened during a run.
pub(super) fn host() -> Host {
    let uname = rustix::system::uname();
    let [name, system, release] = [uname.nodename(), uname.sysname(), uname.release()]
        .map(|text| text.to_string_lossy().into_owned());
    let value = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        field(&text, name).unwrap_or_default().to_owned()
    };
    let memory = value("/proc/meminfo", "MemTotal");
    Host {
        name,
        cpu: value("/proc/cpuinfo", "model name"),
        processors: std::thread::available_parallelism().map_or(0, |count| count.get() as u32),
        memory_kb: memory
            .trim_end_matches("kB")
            .trim()
            .parse()
            .unwrap_or_default(),
        kernel: format!("{system} {release}"),
        frequency_mhz: None,
        steal_pct: None,
    }
}

/// What stands behind the name and a colon.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frequency_is_that_of_all_processors() {
        let cpuinfo =
            "processor\t: 0\ncpu MHz\t\t: 2000.5\n\nprocessor\t: 1\ncpu MHz\t\t: 3000.5\n";
        assert_eq!(mean_frequency(cpuinfo), Some(2500.5));
        assert_eq!(mean_frequency("processor : 0\n"), None);
    }

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let times = |line: &str| ProcessorTimes::parse(line).unwrap();
        let before = times("cpu  100 0 100 700 0 0 0 100 5 0\ncpu0 1 2 3");
        let later = times("cpu  150 0 150 850 0 0 0 150 5 0\n");
        assert_eq!(before.steal_pct(later), Some(50.0 * 100.0 / 300.0));
        assert_eq!(before.steal_pct(before), None);
        assert_eq!(later.steal_pct(before), None);
        assert_eq!(ProcessorTimes::parse("cpu 1 2"), None);
    }

    #[test]
    fn fields_are_found_by_name() {
        let text = "processor\t: 0\nmodel name\t: Some CPU: fast\n";
        assert_eq!(field(text, "model name"), Some("Some CPU: fast"));
        assert_eq!(field(text, "model"), None);
    }
}
