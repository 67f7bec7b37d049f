//! What is said when a step fails: which steps remain, and where rights are missing, whose, on
//! what, and the remedy. Asks the server who and where it is; changes nothing.

use super::InitRun;
use super::session::Failure;
use super::statements;
use crate::error::{Error, Report};
use crate::plan::{InitStep, Layout};
use std::sync::atomic::Ordering;

/// The failure of the first of `remaining` steps as the user is told it.
pub fn explain(run: &mut InitRun<'_>, failure: Failure, remaining: &[InitStep]) -> Error {
    let steps: String = remaining.iter().map(|step| step.letter()).collect();
    if run.stop.load(Ordering::Relaxed) {
        run.console.line("Cancel request sent");
        run.console.notice(&format!(
            "initialization was cancelled; to go on: -I {steps}"
        ));
        return Failure::Stopped.into_error();
    }
    let remedy = failure
        .sqlstate()
        .zip(remaining.first())
        .and_then(|(code, step)| remedy(*step, code, &place(run)?, &run.tables.layout));
    let to_go_on = format!("To go on from here: -I {steps}");
    with_hint(
        failure.into_error(),
        remedy.map_or(to_go_on.clone(), |remedy| format!("{remedy}\n{to_go_on}")),
    )
}

/// Who creates tables, and where.
struct Place {
    role: String,
    /// The schema that tables would go into; none if no schema of the search path can be used.
    schema: Option<String>,
    search_path: String,
    database: String,
}

/// `None` if the server does not even answer this any more.
fn place(run: &mut InitRun<'_>) -> Option<Place> {
    let rows = run.session().rows(statements::WHO_AND_WHERE).ok()?;
    let [role, schema, search_path, database] =
        <[Option<String>; 4]>::try_from(rows.into_iter().next()?).ok()?;
    Some(Place {
        role: role?,
        schema,
        search_path: search_path?,
        database: database?,
    })
}

/// What to do about the SQLSTATE `code` in `step`.
fn remedy(step: InitStep, code: &str, place: &Place, layout: &Layout) -> Option<String> {
    let Place {
        role,
        search_path,
        database,
        ..
    } = place;
    let quoted_role = statements::quoted(role);
    match (step, code, &place.schema) {
        (InitStep::CreateTables, NOT_ALLOWED, Some(schema)) => Some(format!(
            "Role \"{role}\" may not create this in schema \"{schema}\". Let the owner of the schema run \
             GRANT CREATE ON SCHEMA {} TO {quoted_role}, or have the tables in another schema \
             with --schema NAME.",
            statements::quoted(schema)
        )),
        (InitStep::CreateTables, NOT_ALLOWED, None) => {
            let schema = statements::quoted(layout.schema.as_deref().unwrap_or("bench"));
            Some(format!(
                "Role \"{role}\" may not create schema {schema} in database \"{database}\". Let \
                 the owner of the database run CREATE SCHEMA {schema} AUTHORIZATION {quoted_role}, \
                 or have the tables in another schema with --schema NAME."
            ))
        }
        (InitStep::CreateTables, NO_SCHEMA, _) => Some(format!(
            "Role \"{role}\" finds no schema to create tables in: its search_path is \
             {search_path}. Create one of these schemas, or name one with --schema NAME, which is \
             created if it is missing."
        )),
        (InitStep::CreateTables, EXISTS_ALREADY, schema) => Some(format!(
            "Role \"{role}\" creates tables in schema \"{}\", where there is one of this name. \
             Step d drops old tables; --schema NAME has new ones in another schema.",
            schema.as_deref().unwrap_or_default()
        )),
        (InitStep::CreateTables, _, schema) => Some(format!(
            "Role \"{role}\" was to create it in schema \"{}\" of database \"{database}\".",
            schema.as_deref().unwrap_or_default()
        )),
        (_, NOT_ALLOWED, schema) => Some(format!(
            "Role \"{role}\" does not own the old tables in schema \"{}\". Let their owner do \
             this step, or have tables of your own in another schema with --schema NAME.",
            schema.as_deref().unwrap_or_default()
        )),
        _ => None,
    }
}

/// insufficient_privilege
const NOT_ALLOWED: &str = "42501";
/// invalid_schema_name: also when no schema of the search path can be used
const NO_SCHEMA: &str = "3F000";
/// duplicate_table
const EXISTS_ALREADY: &str = "42P07";

fn with_hint(error: Error, hint: String) -> Error {
    match error {
        Error::Server(report) => Error::Server(report.hint(hint)),
        Error::Connect(report) => Error::Connect(with_more_to_do(report, &hint)),
        Error::PasswordRequired(report) => Error::PasswordRequired(with_more_to_do(report, &hint)),
        other @ (Error::Usage(_)
        | Error::Script(_)
        | Error::Environment(_)
        | Error::Io { .. }
        | Error::Interrupted(_)) => other,
    }
}

fn with_more_to_do(report: Report, hint: &str) -> Report {
    let hint = match &report.hint {
        Some(first) => format!("{first}\n{hint}"),
        None => hint.to_owned(),
    };
    report.hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Tables;

    #[test]
    fn missing_rights_are_told_with_role_place_and_remedy() {
        use InitStep::{CreateTables, DropTables, PrimaryKeys};
        let layout = Tables::plain(vec![], 1).layout;
        let told = |step, code, schema: Option<&str>| {
            let place = Place {
                role: "bob".to_owned(),
                schema: schema.map(str::to_owned),
                search_path: "nowhere".to_owned(),
                database: "d".to_owned(),
            };
            remedy(step, code, &place, &layout).unwrap_or_default()
        };
        for (step, code, schema, parts) in [
            (
                CreateTables,
                "42501",
                Some("public"),
                vec![
                    "\"bob\" may not",
                    "schema \"public\"",
                    "GRANT CREATE ON SCHEMA \"public\" TO \"bob\"",
                    "--schema NAME",
                ],
            ),
            (
                CreateTables,
                "42501",
                None,
                vec![
                    "CREATE SCHEMA \"bench\" AUTHORIZATION \"bob\"",
                    "database \"d\"",
                ],
            ),
            (
                CreateTables,
                "3F000",
                None,
                vec!["search_path is nowhere", "--schema NAME"],
            ),
            (CreateTables, "42P07", Some("s"), vec!["Step d", "\"s\""]),
            (CreateTables, "42704", Some("s"), vec!["\"bob\"", "\"s\""]),
            (DropTables, "42501", Some("s"), vec!["\"bob\" does not own"]),
        ] {
            let text = told(step, code, schema);
            for part in parts {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        assert_eq!(told(PrimaryKeys, "53100", Some("s")), "");
    }
}
