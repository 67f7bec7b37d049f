//! The users of this machine, as `/etc/passwd` lists them. Users that live elsewhere, say in a
//! directory service, are not known here.

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name; never empty.
    pub name: String,
    /// User number.
    pub uid: u32,
    /// Number of the primary group.
    pub gid: u32,
}

/// All users; none if the list cannot be read.
pub fn all() -> Vec<User> {
    // A name that is not UTF-8 must not hide the others.
    let text = std::fs::read("/etc/passwd").unwrap_or_default();
    parse(&String::from_utf8_lossy(&text))
}

/// The users in a text of the form of `/etc/passwd`: lines `name:password:uid:gid:…`. Others are
/// passed over.
pub fn parse(passwd: &str) -> Vec<User> {
    passwd.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { name, uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_users_are_passed_over() {
        let text = "root:x:0:0:root:/root:/bin/sh\n\
                    broken\n\
                    :x:7:7::\n\
                    +::::::\n\
                    postgres:x:104:112::/:/bin/sh\n";
        let user = |name: &str, uid, gid| User {
            name: name.to_owned(),
            uid,
            gid,
        };
        assert_eq!(
            parse(text),
            [user("root", 0, 0), user("postgres", 104, 112)]
        );
    }
}
