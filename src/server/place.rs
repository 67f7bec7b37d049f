//! What a server is set to, and who else is there.

use postgres::{Client, SimpleQueryRow};

use super::number;
use crate::conninfo::holds_password;
use crate::control::rows;
use crate::result::{ServerPlace, ServerSetting};

const SETTINGS: &str = "select name, setting, coalesce(unit, ''), source from pg_settings \
    where source not in ('default', 'override', 'client', 'session') order by name";

const OTHER_SESSIONS: &str = "select count(*) from pg_stat_activity \
    where backend_type = 'client backend' and pid <> pg_backend_pid()";

/// Stands for a value with a password.
const MASK: &str = "(masked)";

/// What is known of the server that `client` is connected to.
pub fn place(client: &mut Client, database: &str) -> ServerPlace {
    let settings = rows(client, SETTINGS).unwrap_or_default();
    let others = rows(client, OTHER_SESSIONS).unwrap_or_default();
    ServerPlace {
        database: database.to_owned(),
        settings: settings.iter().map(setting).collect(),
        other_sessions: others.first().and_then(|row| number(row, 0)),
    }
}

fn setting(row: &SimpleQueryRow) -> ServerSetting {
    let text = |column| row.get(column).unwrap_or_default().to_owned();
    let value = text(1);
    ServerSetting {
        name: text(0),
        value: match holds_password(&value) {
            true => MASK.to_owned(),
            false => value,
        },
        unit: text(2),
        source: text(3),
    }
}
