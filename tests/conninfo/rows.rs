//! The rows. In all texts `$port` is the server's port, `$sockets` the directory of its socket and
//! `$home` the home directory of the row.

/// What is given to both.
#[derive(Debug)]
pub struct Row {
    pub host: Option<String>,
    pub port: Option<String>,
    pub user: Option<String>,
    pub database: Option<String>,
    pub variables: Vec<(String, String)>,
    /// Name below the home directory, permissions, text; `DIRECTORY` makes it one.
    pub files: Vec<(String, u32, String)>,
    /// The server says that it can do TLS, and leaves after the client's hello.
    pub offers_tls: bool,
    pub expectation: Expectation,
}

/// What is to come of it.
#[derive(Debug)]
pub enum Expectation {
    /// Whatever psql does.
    AsPsql,
    /// This: the psql that is installed may be too old to know (libpq 15 was).
    Newer(&'static str),
    /// This, and psql does something else, for this reason.
    Differs {
        expected: &'static str,
        #[expect(dead_code, reason = "it is for the reader of a failure")]
        reason: &'static str,
    },
}

impl Row {
    pub fn is_compared(&self) -> bool {
        !matches!(self.expectation, Expectation::Newer(_))
    }

    fn host(mut self, host: &str) -> Row {
        self.host = Some(host.to_owned());
        self
    }

    fn port(mut self, port: &str) -> Row {
        self.port = Some(port.to_owned());
        self
    }

    fn user(mut self, user: &str) -> Row {
        self.user = Some(user.to_owned());
        self
    }

    fn env(mut self, name: &str, value: &str) -> Row {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn file(self, name: &str, text: &str) -> Row {
        self.file_with_mode(name, 0o600, text)
    }

    fn file_with_mode(mut self, name: &str, mode: u32, text: &str) -> Row {
        self.files.push((name.to_owned(), mode, text.to_owned()));
        self
    }

    fn tls(mut self) -> Row {
        self.offers_tls = true;
        self
    }

    fn newer(mut self, expected: &'static str) -> Row {
        self.expectation = Expectation::Newer(expected);
        self
    }

    fn differs(mut self, expected: &'static str, reason: &'static str) -> Row {
        self.expectation = Expectation::Differs { expected, reason };
        self
    }
}

/// Nothing typed, but for what is told later.
fn bare() -> Row {
    Row {
        host: None,
        port: None,
        user: None,
        database: None,
        variables: Vec::new(),
        files: Vec::new(),
        offers_tls: false,
        expectation: Expectation::AsPsql,
    }
}

/// `-d` with this.
fn d(database: &str) -> Row {
    Row {
        database: Some(database.to_owned()),
        ..bare()
    }
}

/// A keyword string that reaches the server, with more settings.
fn at_server(settings: &str) -> Row {
    d(&format!(
        "host=127.0.0.1 port=$port user=u dbname=d password=p {settings}"
    ))
}

/// A service file and a connection string that uses it.
fn service(text: &str, database: &str) -> Row {
    d(database).file(".pg_service.conf", text)
}

/// A password file for a login of user `u` to database `d` at this host.
fn password_file(text: &str, host: &str) -> Row {
    d(&format!("host={host} port=$port user=u dbname=d")).file(".pgpass", text)
}

pub fn all() -> Vec<Row> {
    [
        precedence(),
        keyword_strings(),
        uris(),
        hosts(),
        variables(),
        services(),
        password_files(),
        numbers(),
        choices(),
        encryption(),
        newer_than_15(),
        differences(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn precedence() -> Vec<Row> {
    let variables = |row: Row| {
        row.env("PGHOST", "127.0.0.9")
            .env("PGPORT", "$port")
            .env("PGUSER", "vu")
            .env("PGDATABASE", "vd")
            .env("PGPASSWORD", "vp")
    };
    vec![
        variables(bare()),
        variables(d("od")),
        variables(d("od").host("127.0.0.2").user("ou")),
        variables(
            d("host=127.0.0.3 user=cu dbname=cd password=cp")
                .host("127.0.0.2")
                .user("ou"),
        ),
        variables(
            d("postgres://cu:cp@127.0.0.3/cd")
                .host("127.0.0.2")
                .user("ou"),
        ),
        variables(d("postgres://").host("127.0.0.2")),
        variables(d("dbname=''")),
        variables(d("user=''")),
        variables(d("password=''")),
        variables(d("host=''")),
        variables(bare().host("").user("").port("")),
        d("host=127.0.0.1 port=$port"),
        d("host=127.0.0.1 port=$port user=u"),
        d("plain").host("127.0.0.1").port("$port"),
        d("host=127.0.0.1 port=$port dbname=host=x"),
        d("host=127.0.0.1 port=$port dbname=a dbname=b user=c user=d"),
        bare().port("$port"),
        d("host=127.0.0.1").port("$port").user("someone else"),
        d("")
            .host("127.0.0.1")
            .port("$port")
            .env("PGDATABASE", "vd"),
    ]
}

fn keyword_strings() -> Vec<Row> {
    vec![
        d("host = 127.0.0.1  port= $port user =u dbname\t=\nd"),
        d("host='127.0.0.1' port='$port'user='u v' dbname=''"),
        d("host=127.0.0.1 port=$port user='it''s'"),
        d("host=127.0.0.1 port=$port user='it\\'s' password='a b\\'c\\\\d'"),
        d("host=127.0.0.1 port=$port user=a\\ b password=a\\'b"),
        d("host=127.0.0.1 port=$port user=a'b"),
        d("host=127.0.0.1 port=$port user=ends\\"),
        d("host=127.0.0.1 port=$port user=é password=ß"),
        d("host=127.0.0.1 port=$port user= dbname=d"),
        d("host"),
        d("host=127.0.0.1 port"),
        d("host=127.0.0.1 port $port"),
        d("host='127.0.0.1"),
        d("host='127.0.0.1\\'"),
        d("=127.0.0.1"),
        d("hots=127.0.0.1"),
        d("HOST=127.0.0.1"),
        d("host=127.0.0.1 port=$port password=two words"),
        d("host=127.0.0.1 port=$port password=two wor=ds"),
        at_server("application_name=app options='-c jit=off -c work_mem=3MB'"),
        at_server("fallback_application_name=fall"),
        at_server("application_name='' fallback_application_name=fall"),
        at_server("client_encoding=LATIN1"),
        at_server("client_encoding=auto").env("LC_ALL", "C.UTF-8"),
        at_server("client_encoding=auto").env("LC_ALL", "C"),
        at_server("client_encoding=auto").env("LANG", "C.UTF-8"),
        at_server("client_encoding=''"),
    ]
}

fn uris() -> Vec<Row> {
    vec![
        d("postgresql://127.0.0.1:$port/d"),
        d("postgres://u@127.0.0.1:$port/d"),
        d("postgres://u:p@127.0.0.1:$port/d"),
        d("postgres://u:@127.0.0.1:$port/d"),
        d("postgres://:p@127.0.0.1:$port/d"),
        d("postgres://u%40x:p%3Aw%2f@127.0.0.1:$port/d%20e"),
        d("postgres://127.0.0.1:$port"),
        d("postgres://127.0.0.1:$port/"),
        d("postgres://127.0.0.1:$port?user=u"),
        d("postgres://127.0.0.1:$port/d?user=u&password=p%26q"),
        d("postgres://127.0.0.1:$port/d?user="),
        d("postgres:///d?host=127.0.0.1&port=$port"),
        d("postgres:///d?host=$sockets&port=$port"),
        d("postgres://127.0.0.2:$port/d?host=127.0.0.3"),
        d("postgres://127.0.0.2,127.0.0.3:$port/d"),
        d("postgres://127.0.0.2:1,127.0.0.3:$port/d"),
        d("postgres://[::1]:$port/d"),
        d("postgres://[::1]:1,127.0.0.1:$port/d"),
        d("postgres://127.0.0.1:$port/d/e@f"),
        d("postgres://127.0.0.1:$port/d?options=-c%20a%3Db"),
        d("postgres://127.0.0.1:$port/d?ssl=true"),
        d("postgres://127.0.0.1:$port/d?application_name=a+b"),
        d("postgres://[::1"),
        d("postgres://[]/d"),
        d("postgres://[::1]x/d"),
        d("postgres://127.0.0.1:$port/d?user"),
        d("postgres://127.0.0.1:$port/d?user=a=b"),
        d("postgres://127.0.0.1:$port/d?hots=a"),
        d("postgres://127.0.0.1:$port/%"),
        d("postgres://127.0.0.1:$port/%2"),
        d("postgres://127.0.0.1:$port/%zz"),
        d("postgres://127.0.0.1:$port/%00"),
        d("postgres://127.0.0.1:x/d"),
        d("postgres://u:p/w@127.0.0.1:$port/d"),
        d("postgres://u:p@127.0.0.1:$port/d?ssl=false"),
        d("postgresql:/127.0.0.1/x=y"),
    ]
}

fn hosts() -> Vec<Row> {
    vec![
        d("host=$sockets port=$port user=u dbname=d"),
        d("host=@$sockets port=$port user=u dbname=d"),
        d("host=/nowhere port=$port"),
        d("host=/nowhere,127.0.0.1 port=$port user=u dbname=d"),
        d("host=127.0.0.1,127.0.0.2 port=1,$port user=u dbname=d password=p"),
        d("host=127.0.0.1,127.0.0.2 port=,$port user=u dbname=d"),
        d("host=127.0.0.1,127.0.0.2,127.0.0.3 port=1"),
        d("host=127.0.0.1,127.0.0.2,127.0.0.3 port=1,2"),
        d("host=127.0.0.1 port=1,2"),
        d("host=,127.0.0.1 port=$port user=u dbname=d"),
        d("port=$port,$port"),
        d("host=localhost port=$port user=u dbname=d"),
        d("hostaddr=127.0.0.4 port=$port user=u dbname=d"),
        d("host=never.invalid hostaddr=127.0.0.4 port=$port user=u dbname=d"),
        d("host=$sockets hostaddr=127.0.0.4 port=$port user=u dbname=d"),
        d("host=a.invalid,b.invalid hostaddr=127.0.0.4,127.0.0.5 port=1,$port user=u dbname=d"),
        d("host=a.invalid,$sockets hostaddr=127.0.0.4, port=1,$port user=u dbname=d"),
        d("host=a,b hostaddr=127.0.0.4"),
        d("host=a hostaddr=127.0.0.4,127.0.0.5"),
        d("hostaddr=localhost port=$port"),
        d("hostaddr=::1,127.0.0.5 port=1,$port user=u dbname=d"),
        d("user=u dbname=d port=$port").env("PGHOSTADDR", "127.0.0.6"),
    ]
}

fn variables() -> Vec<Row> {
    vec![
        at_server("").env("PGAPPNAME", "va"),
        at_server("").env("PGOPTIONS", "-c jit=off"),
        at_server("").env("PGCLIENTENCODING", "LATIN1"),
        at_server("")
            .env("PGTZ", "UTC")
            .env("PGDATESTYLE", "ISO, DMY"),
        at_server("")
            .env("PGGEQO", "default")
            .env("PGTZ", "DEFAULT"),
        at_server("options='-c a=b'")
            .env("PGTZ", "a\\b")
            .env("PGGEQO", "off"),
        at_server("").env("PGSSLMODE", "require"),
        at_server("sslmode=disable").env("PGSSLMODE", "require"),
        at_server("").env("PGSSLMODE", ""),
        at_server("").env("PGSSLMODE", "nonsense"),
        at_server("").env("PGREQUIRESSL", "1"),
        at_server("").env("PGREQUIRESSL", "0"),
        at_server("sslmode=disable").env("PGREQUIRESSL", "1"),
        at_server("requiressl=1"),
        at_server("requiressl=0").env("PGSSLMODE", "require"),
        at_server("").env("PGCONNECT_TIMEOUT", "x"),
        at_server("").env("PGTARGETSESSIONATTRS", "nonsense"),
        at_server("").env("PGPORT", "nonsense"),
        bare().host("127.0.0.1").env("PGPORT", "nonsense"),
    ]
}

fn services() -> Vec<Row> {
    const FILE: &str = "# all\n[other]\nhost=127.0.0.8\nnonsense\n\n[s]\n\
                        host=127.0.0.3\nport=$port\n  user=su  \ndbname=sd\npassword=s p\n";
    vec![
        service(FILE, "service=s"),
        service(FILE, "service=s user=cu dbname=cd"),
        service(FILE, "service=s host=''"),
        service(FILE, "service=s").host("127.0.0.2").user("ou"),
        service(FILE, "postgres:///?service=s"),
        service(FILE, "postgres:///cd?service=s"),
        service(FILE, "d").env("PGSERVICE", "s"),
        service(FILE, "service=s")
            .env("PGUSER", "vu")
            .env("PGHOST", "127.0.0.9"),
        service(FILE, "service=s").env("PGSERVICE", "other"),
        service(FILE, "service=other").env("PGPORT", "$port"),
        service(FILE, "service=absent"),
        service(FILE, "service=''"),
        service(FILE, "host=127.0.0.1 port=$port").env("PGSERVICE", ""),
        service("[s]\nhost = 127.0.0.1\n", "service=s"),
        service("[s]\nhost\n", "service=s"),
        service("[s]\nhots=127.0.0.1\n", "service=s"),
        service("[s]\nservice=t\n[t]\nhost=127.0.0.1\n", "service=s"),
        service(
            "[s]\nhost=127.0.0.1\nport=$port\noptions=-c a=b\nuser='q'\n",
            "service=s",
        ),
        service(
            "[s]\nhost=127.0.0.1\n[t]\nport=1\n[s]\nport=$port\n",
            "service=s",
        )
        .port("$port"),
        service("[s] \n\thost=127.0.0.1\r\nport=$port\n", "service=s"),
        service(
            "[s]\nhost=127.0.0.1\nport=$port\nsslmode=require\n",
            "service=s",
        ),
        service("[S]\nhost=127.0.0.1\nport=$port\n", "service=s"),
        d("service=s")
            .file("named", FILE)
            .env("PGSERVICEFILE", "$home/named"),
        service(FILE, "service=s").env("PGSERVICEFILE", "$home/absent"),
        service("[t]\n", "service=s")
            .file("system/pg_service.conf", FILE)
            .env("PGSYSCONFDIR", "$home/system"),
        service(FILE, "service=s")
            .file("system/pg_service.conf", "[s]\nhost=127.0.0.8\n")
            .env("PGSYSCONFDIR", "$home/system"),
        d("service=s")
            .file("system/pg_service.conf", FILE)
            .env("PGSYSCONFDIR", "$home/system"),
        d("service=s").env("PGSYSCONFDIR", "$home/absent"),
    ]
}

fn password_files() -> Vec<Row> {
    vec![
        password_file("127.0.0.1:$port:d:u:p\n", "127.0.0.1"),
        password_file("127.0.0.1:1:d:u:no\n*:*:*:*:p\n*:*:*:*:late\n", "127.0.0.1"),
        password_file("# *:*:*:*:no\n\n127.0.0.2:*:*:*:p\r\n", "127.0.0.2"),
        password_file("*:*:*:*:p\\:w\\\\d\\x:rest\n", "127.0.0.1"),
        password_file("*:*:*:*:ends\\", "127.0.0.1"),
        password_file("*:*:*:*:\n*:*:*:*:late\n", "127.0.0.1"),
        password_file("*:*:*:other:no\n", "127.0.0.1"),
        password_file("*:*:*:*\n", "127.0.0.1"),
        password_file("localhost:*:*:*:p\n", "127.0.0.1"),
        password_file("localhost:*:*:*:p\n", "localhost"),
        password_file("localhost:*:*:*:no\n", "$sockets"),
        password_file("$sockets:*:*:*:p\n", "$sockets"),
        password_file("localhost:*:*:*:no\n", "@$sockets"),
        password_file("*:*:*:*:p\n", "127.0.0.1").env("PGPASSWORD", "vp"),
        password_file("*:*:*:*:p\n", "127.0.0.1").env("PGPASSWORD", ""),
        password_file("*:*:*:*:p\n", "127.0.0.1").env("PGPASSFILE", "$home/absent"),
        password_file("*:*:*:*:no\n", "127.0.0.1")
            .file("named", "*:*:*:*:p")
            .env("PGPASSFILE", "$home/named"),
        d("host=127.0.0.1 port=$port user=u dbname=d passfile=$home/named")
            .file("named", "*:*:*:*:p"),
        d("host=127.0.0.1 port=$port user=u dbname=d").file_with_mode(
            ".pgpass",
            0o640,
            "*:*:*:*:p",
        ),
        d("host=127.0.0.1 port=$port user=u dbname=d").file_with_mode(
            ".pgpass",
            0o604,
            "*:*:*:*:p",
        ),
        d("host=127.0.0.1 port=$port user=u dbname=d").file_with_mode(
            ".pgpass",
            0o400,
            "*:*:*:*:p",
        ),
        d("host=127.0.0.1 port=$port user=u dbname=d").file(".pgpass", "DIRECTORY"),
        d("host=127.0.0.1 port=$port user=u\\:v dbname='d\\\\e'")
            .file(".pgpass", "*:*:d\\\\e:u\\:v:p"),
        d("host=127.0.0.2,127.0.0.3 port=1,$port user=u dbname=d")
            .file(".pgpass", "127.0.0.2:*:*:*:no\n127.0.0.3:*:*:*:p"),
        d("hostaddr=127.0.0.3 port=$port user=u dbname=d").file(".pgpass", "127.0.0.3:*:*:*:p"),
        d("host=n.invalid hostaddr=127.0.0.3 port=$port user=u dbname=d")
            .file(".pgpass", "127.0.0.3:*:*:*:no\nn.invalid:*:*:*:p"),
        service(
            "[s]\nhost=127.0.0.3\nport=$port\nuser=su\ndbname=sd\n",
            "service=s",
        )
        .file(".pgpass", "127.0.0.3:$port:sd:su:p"),
    ]
}

fn numbers() -> Vec<Row> {
    vec![
        at_server("connect_timeout=5"),
        at_server("connect_timeout=' 5 '"),
        at_server("connect_timeout=-1"),
        at_server("connect_timeout=0"),
        at_server("connect_timeout=+7"),
        at_server("connect_timeout=''"),
        at_server("connect_timeout=5s"),
        at_server("connect_timeout=0x5"),
        at_server("connect_timeout=99999999999"),
        at_server("keepalives=0"),
        at_server("keepalives=x"),
        at_server("keepalives_idle=30 keepalives_interval=5 keepalives_count=3"),
        at_server("keepalives_idle=x"),
        at_server("keepalives_interval=''"),
        at_server("keepalives_count=1.5"),
        at_server("tcp_user_timeout=1000"),
        at_server("tcp_user_timeout=x"),
        d("host=127.0.0.1 port=' $port ' user=u dbname=d"),
        d("host=127.0.0.1 port=+$port user=u dbname=d"),
        d("host=127.0.0.1 port=0"),
        d("host=127.0.0.1 port=65536"),
        d("host=127.0.0.1 port=-1"),
        d("host=127.0.0.1 port=x"),
    ]
}

fn choices() -> Vec<Row> {
    let mut rows = Vec::new();
    for value in ["any", "", "Any", "nonsense"] {
        rows.push(at_server(&format!("target_session_attrs='{value}'")));
    }
    for value in [
        "read-write",
        "read-only",
        "primary",
        "standby",
        "prefer-standby",
    ] {
        rows.push(at_server(&format!("target_session_attrs={value}")));
    }
    for value in ["disable", "prefer", "", "nonsense"] {
        rows.push(at_server(&format!("channel_binding='{value}'")));
    }
    for value in ["disable", "prefer", "", "nonsense"] {
        rows.push(at_server(&format!("gssencmode='{value}'")));
    }
    for value in [
        "sslcompression=0",
        "sslcompression=1",
        "replication=off",
        "requirepeer=x",
    ] {
        rows.push(at_server(value));
    }
    rows
}

fn encryption() -> Vec<Row> {
    const CERTIFICATE: &str = "not looked at";
    let mut rows = Vec::new();
    for mode in [
        "disable",
        "allow",
        "prefer",
        "require",
        "verify-ca",
        "verify-full",
        "nonsense",
        "",
    ] {
        if !["allow", "verify-ca", "verify-full"].contains(&mode) {
            rows.push(at_server(&format!("sslmode='{mode}'")));
        }
        rows.push(at_server(&format!("sslmode='{mode}'")).tls());
        let at_socket = format!("host=$sockets port=$port user=u dbname=d sslmode='{mode}'");
        rows.push(d(&at_socket).tls());
    }
    let to_name = |settings: &str| {
        d(&format!(
            "host=localhost hostaddr=127.0.0.1 port=$port user=u dbname=d {settings}"
        ))
        .tls()
    };
    rows.extend([
        to_name("sslmode=require"),
        to_name("sslmode=require sslsni=0"),
        to_name("sslmode=require sslsni=1"),
        to_name("sslmode=verify-full sslrootcert=$home/absent"),
        at_server("sslmode=require sslrootcert=$home/absent").tls(),
        at_server("sslmode=require sslcrl=$home/absent").tls(),
        at_server("sslmode=require sslcert=$home/absent").tls(),
        at_server("sslmode=require ssl_min_protocol_version=TLSv1.2").tls(),
        at_server("sslmode=require ssl_min_protocol_version=tlsv1.3").tls(),
        at_server("sslmode=require ssl_min_protocol_version=''").tls(),
        at_server("ssl_min_protocol_version=TLSv2"),
        at_server("ssl_max_protocol_version=nonsense"),
        at_server("ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2"),
        at_server("ssl_max_protocol_version=TLSv1.1"),
        at_server("ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.3"),
        // The key of a certificate has to be there and to be a secret.
        at_server("sslmode=disable sslkey=$home/absent")
            .file(".postgresql/postgresql.crt", CERTIFICATE),
        d("host=$sockets port=$port user=u dbname=d sslmode=require")
            .file(".postgresql/postgresql.crt", CERTIFICATE),
    ]);
    rows
}

/// What they say to a server that does not do TLS.
const PREFERS: &str =
    "server at \"127.0.0.1\", port $port; asks for TLS; u wants d with psql []; password p";
const REQUIRES: &str = "server at \"127.0.0.1\", port $port; asks for TLS";

const HELLO: &str = "server at \"127.0.0.1\", port $port; server at \"127.0.0.1\", port $port; \
                     asks for TLS; says hello; u wants d with psql []; password p";
const ALLOWS: &str = "server at \"127.0.0.1\", port $port; server at \"127.0.0.1\", port $port; \
                      u wants d with psql []; password p; asks for TLS";

/// Settings that libpq 15 did not know, or took otherwise.
fn newer_than_15() -> Vec<Row> {
    let good = [
        "require_auth=scram-sha-256",
        "require_auth=password,md5",
        "require_auth=!password,!md5",
        "require_auth=none,scram-sha-256",
        "require_auth=!none",
        "require_auth=oauth",
        "require_auth=''",
        "sslcertmode=disable",
        "sslcertmode=allow",
        "sslcertmode=require",
        "load_balance_hosts=disable",
        "load_balance_hosts=random",
        "min_protocol_version=3.0",
        "max_protocol_version=3.2",
        "max_protocol_version=latest",
        "min_protocol_version=3.2",
        "sslnegotiation=postgres",
        "gssdelegation=0",
    ];
    let refused = [
        "require_auth=nonsense",
        "require_auth=md5,md5",
        "require_auth=!md5,!md5",
        "require_auth=md5,!password",
        "require_auth=!md5,password",
        "require_auth=md5,",
        "sslcertmode=nonsense",
        "sslcertmode=''",
        "load_balance_hosts=nonsense",
        "load_balance_hosts=''",
        "min_protocol_version=3.1",
        "max_protocol_version=2.0",
        "min_protocol_version=3.2 max_protocol_version=3.0",
        "sslnegotiation=direct",
        "sslnegotiation=direct sslmode=prefer",
        "sslnegotiation=nonsense",
        "sslrootcert=system sslmode=require",
        "sslrootcert=system sslmode=prefer",
        "sslkeylogfile=x",
        "oauth_issuer=x",
        "scram_client_key=x",
    ];
    let mut rows: Vec<Row> = good
        .map(|settings| at_server(settings).newer(PREFERS))
        .into();
    rows.extend(refused.map(|settings| at_server(settings).newer("refused")));
    rows.extend([
        at_server("sslrootcert=system").newer(REQUIRES),
        at_server("sslrootcert=system")
            .env("PGSSLMODE", "prefer")
            .newer("refused"),
        at_server("sslrootcert=system sslmode=verify-full").newer(REQUIRES),
        at_server("")
            .env("PGREQUIREAUTH", "nonsense")
            .newer("refused"),
        at_server("")
            .env("PGLOADBALANCEHOSTS", "random")
            .newer(PREFERS),
        // Since 17 a server that has no TLS is not asked in plain a second time.
        at_server("sslmode=allow").newer(ALLOWS),
    ]);
    rows
}

/// Where this program does something else than psql on purpose.
fn differences() -> Vec<Row> {
    const FORWARD: &str = "a setting that cannot be is told before anything is connected";
    const NO_GSS: &str = "Kerberos is refused, and not only where a server asks for it";
    const ZERO: &str = "zero is the system's setting, as the manual has it; the kernel refuses it";
    const KEY: &str = "an unfit key makes no plain connection of one that could be encrypted";
    const CERTIFICATE: &str = "not looked at";
    vec![
        at_server("krbsrvname=x").differs("refused", NO_GSS),
        at_server("gsslib=gssapi").differs("refused", NO_GSS),
        at_server("sslpassword=x").differs("refused", "encrypted client keys are not supported"),
        at_server("sslsni=yes").differs("refused", "libpq takes everything but 1 for no"),
        at_server("replication=database").differs("refused", "a benchmark is no replica"),
        at_server("ssl_min_protocol_version=TLSv1 ssl_max_protocol_version=TLSv1.1")
            .differs("refused", "TLS 1.1 is not spoken"),
        at_server("sslcompression=yes").differs("refused", "a typing error is told"),
        at_server("keepalives_idle=0").differs(PREFERS, ZERO),
        at_server("keepalives_interval=-1").differs(PREFERS, ZERO),
        d("host=127.0.0.2,127.0.0.1 port=70000,$port").differs("refused", FORWARD),
        d("hostaddr=localhost,127.0.0.1 port=$port").differs("refused", FORWARD),
        at_server("sslmode=verify-full").differs("refused", FORWARD),
        at_server("sslmode=verify-ca").differs("refused", FORWARD),
        at_server("sslmode=verify-ca")
            .file_with_mode(".postgresql/postgresql.key", 0o644, CERTIFICATE)
            .file(".postgresql/postgresql.crt", CERTIFICATE)
            .differs("refused", FORWARD),
        at_server("sslmode=prefer")
            .file_with_mode(".postgresql/postgresql.key", 0o644, CERTIFICATE)
            .file(".postgresql/postgresql.crt", CERTIFICATE)
            .tls()
            .differs(HELLO, KEY),
    ]
}
