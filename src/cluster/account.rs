//! Who owns a temporary cluster: a server refuses to run as root, so that root lends it an
//! unprivileged user. Reads the table of users; changes nothing.

use crate::error::{Error, Report};

/// Users that root may lend, best first.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// Who runs the server and who connects to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user and group that the server is to run as, if not our own.
    pub lent: Option<Lent>,
    /// Name of the database superuser: the user who runs this program, so that psql needs no
    /// `-U`.
    pub superuser: String,
}

/// An unprivileged user that root starts the server as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lent {
    /// Name of the user.
    pub name: String,
    /// User number.
    pub uid: u32,
    /// Its primary group.
    pub gid: u32,
}

impl Account {
    /// For a process of user `uid`, where `passwd` is the text of `/etc/passwd`.
    ///
    /// # Errors
    /// [`Error::Environment`] where root finds nobody to lend.
    pub fn choose(uid: u32, passwd: &str) -> Result<Self, Error> {
        let users: Vec<Lent> = passwd.lines().filter_map(parse_user).collect();
        let lent = match uid {
            0 => Some(unprivileged(&users)?),
            _ => None,
        };
        Ok(Account {
            lent,
            superuser: users
                .into_iter()
                .find(|user| user.uid == uid)
                .map(|user| user.name)
                .filter(|name| !is_reserved(name))
                .unwrap_or_else(|| "postgres".to_owned()),
        })
    }
}

fn unprivileged(users: &[Lent]) -> Result<Lent, Error> {
    UNPRIVILEGED
        .iter()
        .find_map(|name| {
            users
                .iter()
                .find(|user| user.name == *name && user.uid != 0)
        })
        .cloned()
        .ok_or_else(|| {
            Error::Environment(
                Report::new(
                    "a PostgreSQL server does not run as root, and there is no user \
                     \"postgres\" or \"nobody\" to run it as",
                )
                .hint("Run as an unprivileged user, or create a user \"postgres\"."),
            )
        })
}

/// The server keeps role names that begin so for itself.
fn is_reserved(name: &str) -> bool {
    name.starts_with("pg_")
}

/// One line `name:password:uid:gid:…`.
fn parse_user(line: &str) -> Option<Lent> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(Lent { name, uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
         broken line\n\
         nobody:x:65534:65533::/:/bin/false\n\
         anna:x:1000:100::/home/anna:/bin/sh\n\
         pg_tom:x:1001:100::/home/tom:/bin/sh\n";

    #[test]
    fn an_ordinary_user_runs_the_server_itself() {
        for (uid, superuser) in [(1000, "anna"), (1001, "postgres"), (77, "postgres")] {
            let account = Account::choose(uid, PASSWD).unwrap();
            assert_eq!((account.lent, &*account.superuser), (None, superuser));
        }
    }

    #[test]
    fn root_lends_postgres_else_nobody_else_refuses() {
        let lent = |passwd: &str| Account::choose(0, passwd).map(|account| account.lent);
        let nobody = lent(PASSWD).unwrap().unwrap();
        assert_eq!(
            (&*nobody.name, nobody.uid, nobody.gid),
            ("nobody", 65534, 65533)
        );
        let postgres = lent(&format!("{PASSWD}postgres:x:101:104::/:/bin/sh\n"));
        assert_eq!(postgres.unwrap().unwrap().name, "postgres");
        assert!(lent("root:x:0:0::/root:/bin/sh").is_err());
        assert!(lent("postgres:x:0:0::/root:/bin/sh").is_err());
    }
}
