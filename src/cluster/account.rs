//! Who owns a temporary cluster: a server refuses to run as root, so that root lends it an
//! unprivileged user. Changes nothing.

use crate::error::{Error, Report};
use crate::users::User;

/// Users that root may lend, best first.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// Who runs the server and who connects to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user and group that the server is to run as, if not our own.
    pub lent: Option<User>,
    /// Name of the database superuser: the user who runs this program, so that psql needs no
    /// `-U`.
    pub superuser: String,
}

impl Account {
    /// For a process of user `uid` on a machine with these users.
    ///
    /// # Errors
    /// [`Error::Environment`] where root finds nobody to lend.
    pub fn choose(uid: u32, users: &[User]) -> Result<Self, Error> {
        let lent = match uid {
            0 => Some(unprivileged(users)?),
            _ => None,
        };
        Ok(Account {
            lent,
            superuser: users
                .iter()
                .find(|user| user.uid == uid)
                .map(|user| user.name.clone())
                .filter(|name| !is_reserved(name))
                .unwrap_or_else(|| "postgres".to_owned()),
        })
    }
}

fn unprivileged(users: &[User]) -> Result<User, Error> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::parse;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
         nobody:x:65534:65533::/:/bin/false\n\
         anna:x:1000:100::/home/anna:/bin/sh\n\
         pg_tom:x:1001:100::/home/tom:/bin/sh\n";

    #[test]
    fn an_ordinary_user_runs_the_server_itself() {
        for (uid, superuser) in [(1000, "anna"), (1001, "postgres"), (77, "postgres")] {
            let account = Account::choose(uid, &parse(PASSWD)).unwrap();
            assert_eq!((account.lent, &*account.superuser), (None, superuser));
        }
    }

    #[test]
    fn root_lends_postgres_else_nobody_else_refuses() {
        let lent = |passwd: &str| Account::choose(0, &parse(passwd)).map(|account| account.lent);
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
