//! Makes one [`Target`] of everything that says something about it. What goes before what is
//! decided here; how strings are written is not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environment::Environment;
use super::error::SettingsError;
use super::keywords::{self, KEYWORDS, Origin, Settings};
use super::{ConnectionOptions, Host, HostName, Secret, Target, uri};

/// Port of a server of which nothing is said.
const DEFAULT_PORT: u16 = 5432;

/// Where servers of a distribution put their sockets; elsewhere it is the second one.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Settings that libpq takes from variables of their own and hands to the server.
const SETTING_VARIABLES: [(&str, &str); 3] = [
    ("PGDATESTYLE", "datestyle"),
    ("PGTZ", "timezone"),
    ("PGGEQO", "geqo"),
];

impl Target {
    /// Makes a target of what was typed and what the environment says. A connection string goes
    /// before options, they before variables, and those before defaults.
    ///
    /// # Errors
    /// Something is malformed, unknown, or not supported.
    pub fn resolve(
        options: &ConnectionOptions,
        environment: &dyn Environment,
    ) -> Result<Target, SettingsError> {
        let mut settings = Settings::default();
        add_options(options, &mut settings)?;
        add_variables(environment, &mut settings)?;
        settings.refuse_unsupported()?;
        let user = match settings.value("user") {
            Some(user) => user.to_owned(),
            None => environment.user_name().map_err(SettingsError::NoUser)?,
        };
        Ok(Target {
            hosts: read_hosts(&settings, environment)?,
            database: settings.value("dbname").unwrap_or(&user).to_owned(),
            user,
            password: settings.value("password").map(Secret::from),
            options: server_options(&settings, environment)?,
            application_name: settings
                .value("application_name")
                .or_else(|| settings.value("fallback_application_name"))
                .unwrap_or(&options.program_name)
                .to_owned(),
            connect_timeout: read_timeout(&settings)?,
            ..Target::plain(Vec::new(), "", "")
        })
    }
}

/// Empty options count as not given. A connection string in place of the database name overrides
/// the others, also with an empty value.
fn add_options(options: &ConnectionOptions, settings: &mut Settings) -> Result<(), SettingsError> {
    let given = [
        ("host", &options.host),
        ("port", &options.port),
        ("user", &options.user),
    ];
    for (keyword, value) in given {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            settings.set(keyword, value.clone(), Origin::CommandLine)?;
        }
    }
    let Some(database) = options.database.as_ref().filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    let pairs = if uri::is_uri(database) {
        uri::parse_uri(database)?
    } else if database.contains('=') {
        keywords::parse_keyword_string(database)?
    } else {
        return settings.set("dbname", database.clone(), Origin::CommandLine);
    };
    for (keyword, value) in pairs {
        settings.set(&keyword, value, Origin::ConnectionString)?;
    }
    Ok(())
}

fn add_variables(
    environment: &dyn Environment,
    settings: &mut Settings,
) -> Result<(), SettingsError> {
    for keyword in KEYWORDS {
        let Some(name) = keyword.variable else {
            continue;
        };
        if let Some(value) = read_variable(environment, name)? {
            settings.set_default(keyword, value, Origin::Variable(name));
        }
    }
    Ok(())
}

fn read_variable(
    environment: &dyn Environment,
    name: &'static str,
) -> Result<Option<String>, SettingsError> {
    environment
        .variable(name)
        .map(|value| {
            value
                .into_string()
                .map_err(|_| SettingsError::NotText(name))
        })
        .transpose()
}

/// Hosts with their ports: one port serves all hosts, else each has its own.
fn read_hosts(
    settings: &Settings,
    environment: &dyn Environment,
) -> Result<Vec<Host>, SettingsError> {
    let names: Vec<&str> = settings.value("host").unwrap_or("").split(',').collect();
    let (ports, origin) = settings
        .setting("port")
        .unwrap_or(("", Origin::CommandLine));
    let ports = ports
        .split(',')
        .map(|port| read_port(port, origin))
        .collect::<Result<Vec<u16>, _>>()?;
    if ports.len() != 1 && ports.len() != names.len() {
        return Err(SettingsError::PortCount {
            ports: ports.len(),
            hosts: names.len(),
        });
    }
    let hosts = names.iter().zip(ports.iter().cycle());
    Ok(hosts
        .map(|(name, port)| {
            Host::new(
                match name.trim_matches(' ') {
                    "" => default_host(environment),
                    name => HostName::parse(name),
                },
                *port,
            )
        })
        .collect())
}

fn read_port(text: &str, origin: Origin) -> Result<u16, SettingsError> {
    match text.trim() {
        "" => Ok(DEFAULT_PORT),
        number => number
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| SettingsError::InvalidValue {
                keyword: "port",
                value: text.to_owned(),
                origin,
            }),
    }
}

fn default_host(environment: &dyn Environment) -> HostName {
    let [distribution, other] = SOCKET_DIRECTORIES;
    let directory = match environment.has_directory(Path::new(distribution)) {
        true => distribution,
        false => other,
    };
    HostName::SocketDirectory(PathBuf::from(directory))
}

/// Seconds; zero and negative numbers wait for ever.
fn read_timeout(settings: &Settings) -> Result<Option<Duration>, SettingsError> {
    let Some((text, origin)) = settings.setting("connect_timeout") else {
        return Ok(None);
    };
    let seconds: i32 = text
        .trim()
        .parse()
        .map_err(|_| SettingsError::InvalidValue {
            keyword: "connect_timeout",
            value: text.to_owned(),
            origin,
        })?;
    Ok(u64::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs))
}

/// `options`, and as further options of the same kind the settings that libpq sends one by one.
fn server_options(
    settings: &Settings,
    environment: &dyn Environment,
) -> Result<Option<String>, SettingsError> {
    let mut all: Vec<String> = settings
        .value("options")
        .map(str::to_owned)
        .into_iter()
        .collect();
    if let Some(encoding) = settings.value("client_encoding") {
        all.push(server_option("client_encoding", encoding));
    }
    for (variable, setting) in SETTING_VARIABLES {
        match read_variable(environment, variable)? {
            Some(value) if !value.is_empty() && !value.eq_ignore_ascii_case("default") => {
                all.push(server_option(setting, &value));
            }
            Some(_) | None => {}
        }
    }
    Ok((!all.is_empty()).then(|| all.join(" ")))
}

/// The server splits options at white space and takes what follows a backslash as it is.
fn server_option(setting: &str, value: &str) -> String {
    let mut option = format!("-c {setting}=");
    for character in value.chars() {
        if character == '\\' || character.is_ascii_whitespace() {
            option.push('\\');
        }
        option.push(character);
    }
    option
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use proptest::prelude::*;

    use super::*;

    /// Surroundings made up for a test.
    struct Surroundings {
        variables: Vec<(&'static str, OsString)>,
        has_run_directory: bool,
        user: Result<String, String>,
    }

    impl Environment for Surroundings {
        fn variable(&self, name: &str) -> Option<OsString> {
            let found = self.variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone())
        }

        fn user_name(&self) -> Result<String, String> {
            self.user.clone()
        }

        fn has_directory(&self, path: &Path) -> bool {
            self.has_run_directory && path == Path::new("/var/run/postgresql")
        }
    }

    fn surroundings(variables: &[(&'static str, &str)]) -> Surroundings {
        Surroundings {
            variables: variables
                .iter()
                .map(|(name, value)| (*name, OsString::from(value)))
                .collect(),
            has_run_directory: true,
            user: Ok("me".to_owned()),
        }
    }

    fn database(name: &str) -> ConnectionOptions {
        ConnectionOptions {
            database: Some(name.to_owned()),
            program_name: "pgmark".to_owned(),
            ..ConnectionOptions::default()
        }
    }

    fn options(host: &str, port: &str, user: &str, name: &str) -> ConnectionOptions {
        ConnectionOptions {
            host: Some(host.to_owned()),
            port: Some(port.to_owned()),
            user: Some(user.to_owned()),
            ..database(name)
        }
    }

    /// `user database host:port,host:port`.
    fn tell(target: &Target) -> String {
        let hosts: Vec<String> = target
            .hosts
            .iter()
            .map(|host| match &host.name {
                HostName::SocketDirectory(path) => format!("{}:{}", path.display(), host.port),
                HostName::Network(name) => format!("<{name}>:{}", host.port),
            })
            .collect();
        format!("{} {} {}", target.user, target.database, hosts.join(","))
    }

    fn resolve(options: &ConnectionOptions, variables: &[(&'static str, &str)]) -> Target {
        Target::resolve(options, &surroundings(variables)).expect("these settings are good")
    }

    #[test]
    fn connection_string_before_options_before_variables_before_defaults() {
        type Case<'c> = (ConnectionOptions, &'c [(&'static str, &'c str)], &'c str);
        let all: &[(&str, &str)] = &[
            ("PGHOST", "vh"),
            ("PGPORT", "1"),
            ("PGUSER", "vu"),
            ("PGDATABASE", "vd"),
        ];
        let cases: &[Case<'_>] = &[
            (
                ConnectionOptions::default(),
                &[],
                "me me /var/run/postgresql:5432",
            ),
            (database(""), &[], "me me /var/run/postgresql:5432"),
            (database("od"), &[], "me od /var/run/postgresql:5432"),
            (
                ConnectionOptions::default(),
                &[("PGUSER", "vu")],
                "vu vu /var/run/postgresql:5432",
            ),
            (
                options("", "", "ou", ""),
                &[],
                "ou ou /var/run/postgresql:5432",
            ),
            (ConnectionOptions::default(), all, "vu vd <vh>:1"),
            (options("oh", "2", "ou", "od"), all, "ou od <oh>:2"),
            (options("", "", "", ""), all, "vu vd <vh>:1"),
            (
                options("oh", "2", "ou", "host=ch port=3 user=cu dbname=cd"),
                all,
                "cu cd <ch>:3",
            ),
            (
                options("oh", "2", "ou", "postgres://cu@ch:3/cd"),
                all,
                "cu cd <ch>:3",
            ),
            (options("oh", "2", "ou", "host=ch"), all, "ou vd <ch>:2"),
            (options("oh", "2", "ou", "postgres://"), all, "ou vd <oh>:2"),
            (
                options("oh", "2", "ou", "host=''"),
                all,
                "ou vd /var/run/postgresql:2",
            ),
            (
                database("user=a user=b"),
                &[],
                "b b /var/run/postgresql:5432",
            ),
            (
                database("dbname=host=x"),
                &[],
                "me host=x /var/run/postgresql:5432",
            ),
            (
                ConnectionOptions::default(),
                &[("PGHOST", "")],
                "me me /var/run/postgresql:5432",
            ),
        ];
        for (options, variables, expected) in cases {
            assert_eq!(tell(&resolve(options, variables)), *expected, "{options:?}");
        }
    }

    #[test]
    fn lists_of_hosts_and_ports() {
        for (string, expected) in [
            ("host=a,b,c", "<a>:5432,<b>:5432,<c>:5432"),
            ("host=a,b port=1", "<a>:1,<b>:1"),
            ("host=a,b port=1,2", "<a>:1,<b>:2"),
            ("host=a,b port=,2", "<a>:5432,<b>:2"),
            ("host=,b", "/var/run/postgresql:5432,<b>:5432"),
            ("host=/tmp,@/x,::1", "/tmp:5432,@/x:5432,<::1>:5432"),
            ("postgres://a,b:2/", "<a>:5432,<b>:2"),
            ("postgres://[::1]:7/", "<::1>:7"),
            ("postgres://%2Ftmp/", "/tmp:5432"),
            ("port=' 65535 '", "/var/run/postgresql:65535"),
        ] {
            let told = tell(&resolve(&database(string), &[]));
            assert_eq!(told, format!("me me {expected}"), "{string}");
        }
    }

    #[test]
    fn without_the_distribution_s_directory_sockets_lie_in_tmp() {
        let elsewhere = Surroundings {
            has_run_directory: false,
            ..surroundings(&[])
        };
        let target = Target::resolve(&database("d"), &elsewhere).unwrap();
        assert_eq!(tell(&target), "me d /tmp:5432");
    }

    #[test]
    fn the_other_settings_reach_the_target() {
        let target = resolve(
            &database("password='p w' options='-c jit=off' application_name=app connect_timeout=1"),
            &[
                ("PGPASSWORD", "v"),
                ("PGAPPNAME", "v"),
                ("PGCONNECT_TIMEOUT", "9"),
            ],
        );
        assert_eq!(target.password.as_ref().map(Secret::reveal), Some("p w"));
        assert_eq!(target.options.as_deref(), Some("-c jit=off"));
        assert_eq!(target.application_name, "app");
        assert_eq!(target.connect_timeout, Some(Duration::from_secs(1)));

        let target = resolve(
            &database("d"),
            &[
                ("PGPASSWORD", "v"),
                ("PGAPPNAME", "w"),
                ("PGCONNECT_TIMEOUT", "9"),
                ("PGOPTIONS", "x"),
            ],
        );
        assert_eq!(target.password.as_ref().map(Secret::reveal), Some("v"));
        assert_eq!(target.application_name, "w");
        assert_eq!(target.connect_timeout, Some(Duration::from_secs(9)));
        assert_eq!(target.options.as_deref(), Some("x"));

        let target = resolve(&database("password=''"), &[]);
        assert_eq!((target.password, target.options), (None, None));
        assert_eq!(target.application_name, "pgmark");
        let target = resolve(&database("fallback_application_name=f"), &[]);
        assert_eq!(target.application_name, "f");
    }

    #[test]
    fn settings_with_variables_of_their_own_become_options() {
        let variables = [
            ("PGOPTIONS", "-c jit=off"),
            ("PGCLIENTENCODING", "LATIN1"),
            ("PGDATESTYLE", "ISO, DMY"),
            ("PGTZ", "a\\b"),
            ("PGGEQO", "default"),
        ];
        let target = resolve(&database("d"), &variables);
        assert_eq!(
            target.options.as_deref(),
            Some("-c jit=off -c client_encoding=LATIN1 -c datestyle=ISO,\\ DMY -c timezone=a\\\\b")
        );
    }

    #[test]
    fn timeouts_are_whole_seconds_and_none_waits_for_ever() {
        for (text, expected) in [
            ("", None),
            ("0", None),
            ("-1", None),
            (" 1 ", Some(1)),
            ("10", Some(10)),
        ] {
            let target = resolve(&database(&format!("connect_timeout='{text}'")), &[]);
            assert_eq!(
                target.connect_timeout,
                expected.map(Duration::from_secs),
                "{text}"
            );
        }
    }

    #[test]
    fn what_asks_for_nothing_more_is_accepted() {
        for string in [
            "sslmode=disable",
            "sslmode=allow",
            "sslmode=prefer",
            "gssencmode=disable",
            "channel_binding=prefer",
            "target_session_attrs=any",
            "keepalives=1",
            "sslcert=''",
        ] {
            assert_eq!(
                tell(&resolve(&database(string), &[])),
                "me me /var/run/postgresql:5432"
            );
        }
        // What does not take effect is not refused either.
        resolve(&database("sslmode=disable"), &[("PGSSLMODE", "require")]);
    }

    #[test]
    fn bad_settings_are_errors_that_name_what_and_where() {
        type Case<'c> = (
            &'c str,
            &'c [(&'static str, &'c str)],
            &'c str,
            Option<&'c str>,
        );
        let cases: &[Case<'_>] = &[
            (
                "hots=a",
                &[],
                "invalid connection option \"hots\"",
                Some("Did you mean \"host\"?"),
            ),
            (
                "HOST=a",
                &[],
                "invalid connection option \"HOST\"",
                Some("Did you mean \"host\"?"),
            ),
            ("=a", &[], "invalid connection option \"\"", None),
            (
                "postgres://h?hots=a",
                &[],
                "invalid connection option \"hots\"",
                Some("Did you mean \"host\"?"),
            ),
            (
                "host='a",
                &[],
                "unterminated quoted string in connection info string",
                None,
            ),
            (
                "postgres://[::1",
                &[],
                "missing \"]\" after an IPv6 host address in connection URI",
                None,
            ),
            (
                "port=0",
                &[],
                "invalid port \"0\" (from the connection string)",
                None,
            ),
            (
                "port=65536",
                &[],
                "invalid port \"65536\" (from the connection string)",
                None,
            ),
            (
                "d",
                &[("PGPORT", "x")],
                "invalid port \"x\" (from environment variable PGPORT)",
                None,
            ),
            (
                "host=a,b,c port=1,2",
                &[],
                "could not match 2 port numbers to 3 hosts",
                Some("Give one port for all hosts, or one for each."),
            ),
            (
                "host=a port=1,2",
                &[],
                "could not match 2 port numbers to 1 hosts",
                Some("Give one port for all hosts, or one for each."),
            ),
            (
                "connect_timeout=1s",
                &[],
                "invalid connect_timeout \"1s\" (from the connection string)",
                None,
            ),
            (
                "d",
                &[("PGCONNECT_TIMEOUT", "99999999999")],
                "invalid connect_timeout \"99999999999\" (from environment variable PGCONNECT_TIMEOUT)",
                None,
            ),
            (
                "sslmode=require",
                &[],
                "sslmode \"require\" (from the connection string) is not supported",
                Some("Supported here: disable, allow, prefer."),
            ),
            (
                "postgres://h/d?ssl=true",
                &[],
                "sslmode \"require\" (from the connection string) is not supported",
                Some("Supported here: disable, allow, prefer."),
            ),
            (
                "d",
                &[("PGSSLMODE", "verify-full")],
                "sslmode \"verify-full\" (from environment variable PGSSLMODE) is not supported",
                Some("Supported here: disable, allow, prefer."),
            ),
            (
                "d",
                &[("PGSERVICE", "s")],
                "service \"s\" (from environment variable PGSERVICE) is not supported",
                Some("Remove the setting."),
            ),
            (
                "hostaddr=::1",
                &[],
                "hostaddr \"::1\" (from the connection string) is not supported",
                Some("Remove the setting."),
            ),
            (
                "sslpassword=hush",
                &[],
                "sslpassword \"***\" (from the connection string) is not supported",
                Some("Remove the setting."),
            ),
        ];
        for (string, variables, message, hint) in cases {
            let error =
                Target::resolve(&database(string), &surroundings(variables)).expect_err(message);
            let error = crate::error::Error::from(error);
            assert_eq!(error.to_string(), *message);
            let told = error.report().and_then(|report| report.hint.as_deref());
            assert_eq!(told, *hint, "{message}");
        }
    }

    #[test]
    fn a_user_must_be_known_only_if_none_is_named() {
        let nobody = Surroundings {
            user: Err("local user with ID 7 does not exist".to_owned()),
            ..surroundings(&[])
        };
        let error = Target::resolve(&database("d"), &nobody).expect_err("nobody is there");
        assert_eq!(
            error.to_string(),
            "no user name is known: local user with ID 7 does not exist"
        );
        let target = Target::resolve(&database("user=u"), &nobody).unwrap();
        assert_eq!(tell(&target), "u u /var/run/postgresql:5432");
    }

    #[test]
    fn variables_must_be_text() {
        let garbled = Surroundings {
            variables: vec![("PGHOST", OsString::from_vec(vec![0xff]))],
            ..surroundings(&[])
        };
        let error = Target::resolve(&database("d"), &garbled).expect_err("0xff is not UTF-8");
        assert_eq!(
            error.to_string(),
            "environment variable PGHOST is not valid UTF-8"
        );
    }

    #[test]
    fn a_password_never_shows_in_debug_output() {
        for string in ["password=hush", "postgres://me:hush@host"] {
            let options = database(string);
            let target = resolve(&options, &[]);
            assert_eq!(target.password.as_ref().map(Secret::reveal), Some("hush"));
            assert!(!format!("{options:?} {target:?}").contains("hush"));
        }
    }

    proptest! {
        #[test]
        fn any_database_name_does_no_harm(name in "(postgres://|host=|port=|)[\\PC]*") {
            let _ = Target::resolve(&database(&name), &surroundings(&[]));
        }
    }
}
