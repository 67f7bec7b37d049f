//! Service files: settings under a name, in groups as in an ini file. Finds the one that describes
//! a service and gives its settings; which of them take effect is not decided here.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::error::SettingsError;
use super::keywords::{self, Origin, is_space};

/// Where distributions (Debian; the RPM packages of PostgreSQL) put the file for all users. In
/// libpq it is one directory, chosen when it is built.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/etc/postgresql-common", "/etc/sysconfig/pgsql"];

/// A keyword of libpq and its value, with the line that it is from.
pub(super) type ServiceSetting = (&'static str, String, Origin);

/// The settings of a service: from the file that `PGSERVICEFILE` names or the user's own, else
/// from that of the system. The first file that knows the service is the only one that counts.
pub(super) fn settings_of(
    service: &str,
    environment: &dyn Environment,
) -> Result<Vec<ServiceSetting>, SettingsError> {
    let files = files(environment);
    for path in &files {
        let text =
            environment
                .read(path)
                .map_err(|error| SettingsError::UnreadableServiceFile {
                    path: path.clone(),
                    problem: crate::error::system_words(&error),
                })?;
        let text = String::from_utf8_lossy(&text);
        if let Some(settings) = read_group(&text, service, path)? {
            return Ok(settings);
        }
    }
    Err(SettingsError::UnknownService {
        service: service.to_owned(),
        files,
    })
}

/// Files to look into. One that the user named has to be there, the others need not.
fn files(environment: &dyn Environment) -> Vec<PathBuf> {
    let directory = environment.variable("PGSYSCONFDIR").map(PathBuf::from);
    let system = match directory {
        Some(directory) => vec![directory],
        None => SYSTEM_DIRECTORIES.map(PathBuf::from).to_vec(),
    };
    let own = match environment.variable("PGSERVICEFILE") {
        Some(named) => Some(PathBuf::from(named)),
        None => environment
            .home_directory()
            .map(|home| home.join(".pg_service.conf"))
            .filter(|path| environment.file(path).is_some()),
    };
    let system = system
        .into_iter()
        .map(|directory| directory.join("pg_service.conf"))
        .find(|path| environment.file(path).is_some());
    own.into_iter().chain(system).collect()
}

/// The settings in the first group of this name, if there is one. Lines of other groups may be
/// anything.
fn read_group(
    text: &str,
    service: &str,
    path: &Path,
) -> Result<Option<Vec<ServiceSetting>>, SettingsError> {
    let mut settings = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_matches(is_space);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            if settings.is_some() {
                break;
            }
            let is_wanted = header
                .strip_prefix(service)
                .is_some_and(|rest| rest.starts_with(']'));
            settings = is_wanted.then(Vec::new);
        } else if let Some(settings) = &mut settings {
            settings.push(read_setting(line, index + 1, path)?);
        }
    }
    Ok(settings)
}

/// `keyword=value`, with nothing around the keyword and everything behind the sign as the value.
fn read_setting(text: &str, line: usize, path: &Path) -> Result<ServiceSetting, SettingsError> {
    let problem = |problem: String| SettingsError::ServiceFile {
        path: path.to_owned(),
        line,
        problem,
    };
    if text.starts_with("ldap") {
        return Err(problem("unsupported look-up by LDAP".to_owned()));
    }
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| problem("missing \"=\"".to_owned()))?;
    if name == "service" {
        return Err(problem("unsupported nested service".to_owned()));
    }
    let keyword = keywords::find(name)
        .map_err(|_| problem(format!("invalid connection option \"{name}\"")))?;
    let origin = Origin::ServiceFile {
        path: path.to_owned(),
        line,
    };
    Ok((keyword.name, value.to_owned(), origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Vec<(&'static str, String)>>, String> {
        read_group(text, "s", Path::new("/f"))
            .map(|settings| {
                let pairs = |settings: Vec<ServiceSetting>| {
                    settings.into_iter().map(|(name, value, _)| (name, value))
                };
                settings.map(|settings| pairs(settings).collect())
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn groups_are_read_as_libpq_reads_them() {
        type Pairs<'c> = &'c [(&'c str, &'c str)];
        let cases: [(&str, Option<Pairs<'_>>); 9] = [
            ("", None),
            ("[other]\nhost=a\n", None),
            ("[S]\nhost=a\n", None),
            ("[s]", Some(&[])),
            ("host=a\nnonsense\n[s]\nport=1", Some(&[("port", "1")])),
            (
                "# c\n[s] behind\n\t host=a b \r\n\n#x\nuser='u'\n[t]\nport=1\n",
                Some(&[("host", "a b"), ("user", "'u'")]),
            ),
            ("[s]\nhost=a\n[s]\nport=1\n", Some(&[("host", "a")])),
            (
                "[s]\nhost=\noptions=-c a=b",
                Some(&[("host", ""), ("options", "-c a=b")]),
            ),
            ("[other]\nx\n[s]\nhost= a", Some(&[("host", " a")])),
        ];
        for (text, expected) in cases {
            let settings = read(text).expect(text);
            let settings: Option<Vec<(&str, &str)>> = settings.as_ref().map(|settings| {
                let pairs = settings.iter();
                pairs.map(|(name, value)| (*name, value.as_str())).collect()
            });
            assert_eq!(settings.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn broken_lines_are_told_with_file_and_line() {
        for (text, message) in [
            ("[s]\nhost", "missing \"=\" in service file \"/f\", line 2"),
            (
                "[s]\n\nhost =a",
                "invalid connection option \"host \" in service file \"/f\", line 3",
            ),
            (
                "[s]\nservice=t",
                "unsupported nested service in service file \"/f\", line 2",
            ),
            (
                "[s]\nldap://server/dn",
                "unsupported look-up by LDAP in service file \"/f\", line 2",
            ),
        ] {
            assert_eq!(read(text), Err(message.to_owned()));
        }
    }
}
