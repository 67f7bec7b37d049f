//! Makes one [`Target`] of everything that says something about it. What goes before what is
//! decided here; how strings and files are written, and what single settings mean, is not.

use std::path::PathBuf;
use std::time::Duration;

use super::encryption::tls_settings;
use super::environment::Environment;
use super::error::SettingsError;
use super::hosts::{hosts, socket_directory};
use super::keywords::{self, KEYWORDS, Origin, Settings};
use super::login::{login_settings, protocol_versions};
use super::password_file::{self, Login};
use super::target::{HostOrder, KeepaliveSettings, SessionAttributes, Warning};
use super::{ConnectionOptions, HostName, Secret, Target, encoding, service_file, uri};

/// Settings that libpq takes from variables of their own and hands to the server.
const SETTING_VARIABLES: [(&str, &str); 3] = [
    ("PGDATESTYLE", "datestyle"),
    ("PGTZ", "timezone"),
    ("PGGEQO", "geqo"),
];

impl Target {
    /// Makes a target of what was typed and what the surroundings say. A connection string goes
    /// before options, they before a service file, that before variables, and those before defaults.
    ///
    /// # Errors
    /// Something is malformed, unknown, contradictory or not supported, or a file that is needed
    /// is not there.
    pub fn resolve(
        options: &ConnectionOptions,
        environment: &dyn Environment,
    ) -> Result<Target, SettingsError> {
        let mut settings = Settings::default();
        add_options(options, &mut settings)?;
        add_service(environment, &mut settings)?;
        add_variables(environment, &mut settings)?;
        settings.refuse_misplaced()?;
        settings.refuse_unsupported()?;
        let mut target = Target::plain(hosts(&settings, environment)?, "", "");
        target.user = match settings.value("user") {
            Some(user) => user.to_owned(),
            None => environment.user_name().map_err(SettingsError::NoUser)?,
        };
        target.database = settings.value("dbname").unwrap_or(&target.user).to_owned();
        target.options = server_options(&settings, environment)?;
        target.application_name = application_name(&settings, options);
        target.connect_timeout = connect_timeout(&settings)?;
        target.session_attributes = session_attributes(&settings)?;
        target.host_order = host_order(&settings)?;
        target.login = login_settings(&settings)?;
        (target.min_protocol, target.max_protocol) = protocol_versions(&settings)?;
        target.keepalive = keepalive_settings(&settings)?;
        let warnings = &mut target.warnings;
        target.tls = tls_settings(&settings, &target.hosts, environment, warnings)?;
        add_passwords(&mut target, &settings, environment);
        Ok(target)
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
    } else if database.contains('=') && !uri::is_foreign(database) {
        keywords::parse_keyword_string(database)?
    } else {
        return settings.set("dbname", database.clone(), Origin::CommandLine);
    };
    for (keyword, value) in pairs {
        let (keyword, value) = modern(keyword, value);
        settings.set(&keyword, value, Origin::ConnectionString)?;
    }
    Ok(())
}

/// A keyword of old versions of libpq, by what has come in its place.
fn modern(keyword: String, value: String) -> (String, String) {
    if keyword != keywords::OLD_TLS_SWITCH {
        return (keyword, value);
    }
    let mode = match value.starts_with('1') {
        true => "require",
        false => "prefer",
    };
    ("sslmode".to_owned(), mode.to_owned())
}

/// Settings of the service, if one is named.
fn add_service(
    environment: &dyn Environment,
    settings: &mut Settings,
) -> Result<(), SettingsError> {
    let service = match settings.given("service") {
        Some((service, _)) => service.to_owned(),
        None => match read_variable(environment, "PGSERVICE")? {
            Some(service) => service,
            None => return Ok(()),
        },
    };
    for (name, value, origin) in service_file::settings_of(&service, environment)? {
        settings.set_default(keywords::find(name)?, value, origin);
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

/// An empty name is one that was given. The fallback of programs that give none is ours, whatever
/// the user says it is, as it is psql's in psql.
fn application_name(settings: &Settings, options: &ConnectionOptions) -> String {
    settings
        .given("application_name")
        .map_or(options.program_name.as_str(), |(name, _)| name)
        .to_owned()
}

/// Seconds; zero and negative numbers wait for ever. One second is one, as in libpq since 17.
fn connect_timeout(settings: &Settings) -> Result<Option<Duration>, SettingsError> {
    let seconds = positive(settings, "connect_timeout")?;
    Ok((seconds > 0).then(|| Duration::from_secs(u64::from(seconds))))
}

fn session_attributes(settings: &Settings) -> Result<SessionAttributes, SettingsError> {
    let choices = [
        ("any", SessionAttributes::Any),
        ("read-write", SessionAttributes::ReadWrite),
        ("read-only", SessionAttributes::ReadOnly),
        ("primary", SessionAttributes::Primary),
        ("standby", SessionAttributes::Standby),
        ("prefer-standby", SessionAttributes::PreferStandby),
    ];
    settings.choice("target_session_attrs", &choices, SessionAttributes::Any)
}

fn host_order(settings: &Settings) -> Result<HostOrder, SettingsError> {
    let choices = [("disable", HostOrder::Given), ("random", HostOrder::Random)];
    settings.choice("load_balance_hosts", &choices, HostOrder::Given)
}

fn keepalive_settings(settings: &Settings) -> Result<KeepaliveSettings, SettingsError> {
    Ok(KeepaliveSettings {
        enabled: settings.value("keepalives").is_none()
            || settings.integer("keepalives")? != Some(0),
        idle_s: positive(settings, "keepalives_idle")?,
        interval_s: positive(settings, "keepalives_interval")?,
        count: positive(settings, "keepalives_count")?,
        user_timeout_ms: positive(settings, "tcp_user_timeout")?,
    })
}

/// A number of which a negative one means nothing else than zero, which is the default.
fn positive(settings: &Settings, keyword: &'static str) -> Result<u32, SettingsError> {
    let number = settings.integer(keyword)?.unwrap_or(0);
    Ok(u32::try_from(number).unwrap_or(0))
}

/// The password that was given, else for each host the one in the password file.
fn add_passwords(target: &mut Target, settings: &Settings, environment: &dyn Environment) {
    if let Some((password, origin)) = settings.setting("password") {
        target.password = Some(Secret::from(password));
        if *origin == Origin::ConnectionString {
            target.warnings.push(Warning::PasswordInArguments);
        }
        return;
    }
    let of_user = || Some(environment.home_directory()?.join(".pgpass"));
    let named = settings.value("passfile").map(PathBuf::from);
    let Some(path) = named.or_else(of_user) else {
        return;
    };
    let text = match password_file::read(&path, environment) {
        Ok(text) => text,
        Err(warning) => return target.warnings.push(warning),
    };
    let default_directory = HostName::SocketDirectory(socket_directory(environment));
    for host in &mut target.hosts {
        let name = match &host.name {
            name if *name == default_directory => "localhost".to_owned(),
            HostName::SocketDirectory(directory) => directory.to_string_lossy().into_owned(),
            HostName::Network(name) => name.clone(),
        };
        let login = Login {
            host: &name,
            port: host.port,
            database: &target.database,
            user: &target.user,
        };
        host.password = password_file::find(&text, &login);
    }
    target.password_file = Some(path);
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
    let encoding = match settings.value("client_encoding") {
        Some("auto") => encoding::of_locale(environment),
        other => other,
    };
    if let Some(encoding) = encoding {
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
    use std::io;
    use std::os::unix::ffi::OsStringExt;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::conninfo::{
        AuthenticationMethod, ChannelBindingMode, ClientCertificate, FileFacts, ProtocolVersion,
        Roots, SslMode, SslNegotiation, TlsVersion,
    };

    /// Surroundings made up for a test.
    struct Surroundings {
        variables: Vec<(&'static str, OsString)>,
        has_run_directory: bool,
        user: Result<String, String>,
        /// Below `/home/me`, with permissions; all belong to `me`.
        files: Vec<(&'static str, u32, &'static str)>,
    }

    impl Surroundings {
        fn find(&self, path: &Path) -> Option<&(&'static str, u32, &'static str)> {
            let mut files = self.files.iter();
            files.find(|(name, _, _)| Path::new("/home/me").join(name) == path)
        }
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

        fn home_directory(&self) -> Option<PathBuf> {
            Some("/home/me".into())
        }

        fn file(&self, path: &Path) -> Option<FileFacts> {
            self.find(path).map(|(_, mode, _)| FileFacts {
                is_plain: true,
                is_of_root: false,
                mode: *mode,
            })
        }

        fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
            let file = self.find(path).map(|(_, _, text)| text.as_bytes().to_vec());
            file.ok_or_else(|| io::ErrorKind::NotFound.into())
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
            files: Vec::new(),
        }
    }

    fn with_files(files: &[(&'static str, u32, &'static str)]) -> Surroundings {
        Surroundings {
            files: files.to_vec(),
            ..surroundings(&[])
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
        assert_eq!(target.application_name, "pgmark");
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
                "d",
                &[("PGSERVICE", "s")],
                "definition of service \"s\" not found",
                Some("There is no service file; name one with PGSERVICEFILE."),
            ),
            (
                "sslmode=Require",
                &[],
                "invalid sslmode \"Require\" (from the connection string)",
                Some("It is one of: disable, allow, prefer, require, verify-ca, verify-full."),
            ),
            (
                "gssencmode=require",
                &[],
                "gssencmode \"require\" (from the connection string) is not supported",
                Some("Supported here: disable, prefer."),
            ),
            (
                "krbsrvname=x",
                &[],
                "krbsrvname \"x\" (from the connection string) is not supported",
                Some("Kerberos (GSSAPI) is not supported; remove the setting."),
            ),
            (
                "replication=database",
                &[],
                "replication \"database\" (from the connection string) is not supported",
                Some("Supported here: false, off, no, 0."),
            ),
            (
                "host=h sslmode=verify-ca",
                &[],
                "root certificate file \"/home/me/.postgresql/root.crt\" does not exist",
                Some(
                    "Provide the file, use the system's trusted roots with sslrootcert=system, or an \
                     sslmode that verifies nothing.",
                ),
            ),
            (
                "sslpassword=hush",
                &[],
                "sslpassword \"***\" (from the connection string) is not supported",
                Some(
                    "Encrypted client keys are not supported; decrypt the key, say with openssl pkey.",
                ),
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
    fn files_for_encryption_lie_in_the_users_directory() {
        let files = with_files(&[
            (".postgresql/root.crt", 0o644, ""),
            (".postgresql/root.crl", 0o644, ""),
            (".postgresql/postgresql.crt", 0o644, ""),
            (".postgresql/postgresql.key", 0o600, ""),
        ]);
        let directory = Path::new("/home/me/.postgresql");
        let tls = |string| Target::resolve(&database(string), &files).unwrap().tls;
        let all = tls("host=h sslmode=verify-full");
        assert_eq!(all.mode, SslMode::VerifyFull);
        assert_eq!(all.roots, Roots::File(directory.join("root.crt")));
        assert_eq!(all.revocation_list, Some(directory.join("root.crl")));
        let certificate = ClientCertificate {
            certificate: directory.join("postgresql.crt"),
            key: directory.join("postgresql.key"),
        };
        assert_eq!(all.client_certificate, Some(certificate));
        let other = tls("host=h sslrootcert=system sslcrldir=/crl sslcert=/absent sslsni=0");
        assert_eq!(
            (other.mode, other.roots),
            (SslMode::VerifyFull, Roots::System)
        );
        assert_eq!(
            (other.revocation_list, other.client_certificate),
            (None, None)
        );
        assert_eq!(other.revocation_directory, Some("/crl".into()));
        assert!(!other.send_host_name);
        for none_shown in [
            "host=h sslmode=disable",
            "host=h sslcertmode=disable",
            "host=/tmp",
        ] {
            assert_eq!(tls(none_shown).client_certificate, None, "{none_shown}");
        }
        let versions = tls("ssl_min_protocol_version=TLSv1.1 ssl_max_protocol_version=tlsv1.3");
        assert_eq!(versions.min_version, Some(TlsVersion::V1_2));
        assert_eq!(versions.max_version, Some(TlsVersion::V1_3));
    }

    #[test]
    fn an_unfit_key_is_an_error_where_encryption_is_required() {
        let certificate = (".postgresql/postgresql.crt", 0o644, "");
        for (key, is_fit) in [
            (Some(0o600), true),
            (Some(0o400), true),
            (Some(0o640), false),
            (Some(0o604), false),
            (None, false),
        ] {
            let key = key.map(|mode| (".postgresql/postgresql.key", mode, ""));
            let files: Vec<_> = [certificate].into_iter().chain(key).collect();
            let files = with_files(&files);
            let required = Target::resolve(&database("host=h sslmode=require"), &files);
            assert_eq!(required.is_ok(), is_fit, "{key:?}");
            let preferred = Target::resolve(&database("host=h"), &files).unwrap();
            assert_eq!(preferred.tls.client_certificate.is_some(), is_fit);
            assert_eq!(preferred.warnings.is_empty(), is_fit);
        }
    }

    #[test]
    fn what_the_user_should_know_is_handed_out() {
        let told = |string: &str, surroundings: &Surroundings| {
            let target = Target::resolve(&database(string), surroundings).unwrap();
            let lines: Vec<String> = target.warnings.iter().map(Warning::to_string).collect();
            lines.join("|")
        };
        let visible = "a password on the command line is visible to other users in the process \
                       list; use PGPASSWORD or a password file";
        let readable = with_files(&[(".pgpass", 0o644, "*:*:*:*:p")]);
        let cases = [
            ("d", surroundings(&[("PGPASSWORD", "p")]), ""),
            ("password=p", surroundings(&[]), visible),
            ("postgres://u:p@h", surroundings(&[]), visible),
            ("d", with_files(&[(".pgpass", 0o600, "*:*:*:*:p")]), ""),
            (
                "d",
                readable,
                "password file \"/home/me/.pgpass\" has group or world access and is not used; \
                 permissions should be u=rw (0600) or less",
            ),
            (
                "sslcrl=/absent",
                surroundings(&[]),
                "certificate revocation list \"/absent\" does not exist",
            ),
        ];
        for (string, surroundings, expected) in cases {
            assert_eq!(told(string, &surroundings), expected, "{string}");
        }
    }

    #[test]
    fn login_and_network_settings_reach_the_target() {
        let target = resolve(
            &database(
                "host=h target_session_attrs=prefer-standby load_balance_hosts=random \
                 channel_binding=require require_auth=!md5,!password requirepeer=postgres \
                 min_protocol_version=3.2 keepalives=0 keepalives_idle=7 keepalives_interval=8 \
                 keepalives_count=9 tcp_user_timeout=10 sslnegotiation=direct sslmode=require",
            ),
            &[],
        );
        assert_eq!(target.session_attributes, SessionAttributes::PreferStandby);
        assert_eq!(target.host_order, HostOrder::Random);
        assert_eq!(target.login.channel_binding, ChannelBindingMode::Require);
        let required = target.login.required.expect("methods are named");
        assert!(required.forbidden);
        let methods = [AuthenticationMethod::Md5, AuthenticationMethod::Password];
        assert_eq!(required.methods, methods);
        assert_eq!(target.login.required_peer.as_deref(), Some("postgres"));
        assert_eq!(target.min_protocol, ProtocolVersion::V3_2);
        assert_eq!(target.max_protocol, ProtocolVersion::V3_2);
        let keepalive = KeepaliveSettings {
            enabled: false,
            idle_s: 7,
            interval_s: 8,
            count: 9,
            user_timeout_ms: 10,
        };
        assert_eq!(target.keepalive, keepalive);
        assert_eq!(target.tls.negotiation, SslNegotiation::Direct);
    }

    /// Fails unless there is an error, which does not show the password.
    #[track_caller]
    fn refused(options: &ConnectionOptions, variables: &[(&'static str, &str)]) {
        let outcome = Target::resolve(options, &surroundings(variables));
        let error = crate::error::Error::from(outcome.expect_err("it is no good"));
        assert!(!format!("{error} {error:?}").contains("hush"), "{error}");
    }

    #[test]
    fn no_message_shows_a_part_of_a_password() {
        for string in [
            "password=two hush",
            "password=two hush=x",
            "postgres://u:hush/x@h/d",
            "postgres://u:p@hush@h/d",
            "postgres://h/d?password=a&hush",
            "password=%hush sslmode=x",
            "postgres://h/d?password=a&hush=x",
            "postgre://u:hush@h/d",
            "postgre://u:hush@h/d?sslmode=prefer",
            "jdbc:postgresql://h/d?user=u&password=hush",
            "host=h pasword=hush",
            "host=h dbname='postgres://u:hush@h/d'",
        ] {
            refused(&database(string), &[]);
        }
        let uri = "postgres://u:hush@h/d";
        for variable in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE"] {
            refused(&ConnectionOptions::default(), &[(variable, uri)]);
        }
        for value in [uri, "h password=hush"] {
            let value = || Some(value.to_owned());
            let none = ConnectionOptions::default;
            for options in [
                ConnectionOptions {
                    host: value(),
                    ..none()
                },
                ConnectionOptions {
                    port: value(),
                    ..none()
                },
                ConnectionOptions {
                    user: value(),
                    ..none()
                },
            ] {
                refused(&options, &[]);
            }
        }
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
