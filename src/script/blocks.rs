//! Matches `\if`, `\elif`, `\else` and `\endif`, and fills in where each one jumps to.

use super::error::{Problem, Structure};
use super::{Command, CommandKind};

/// A conditional block that is still open.
struct Open {
    /// The branch that is entered last; where it goes on when its condition fails is not known yet.
    branch: usize,
    /// The branches behind the first, which are left for the end when the one above was taken.
    later: Vec<usize>,
    has_else: bool,
}

/// Resolves all jumps. The first thing that does not fit is an error, with its line.
pub(super) fn resolve(commands: &mut [Command]) -> Result<(), (Problem, Option<u64>)> {
    let mut open: Vec<Open> = Vec::new();
    for at in 0..commands.len() {
        step(commands, at, &mut open).map_err(|structure| {
            let command = at + 1;
            let problem = Problem::Structure { structure, command };
            (problem, Some(commands[at].line))
        })?;
    }
    match open.pop() {
        None => Ok(()),
        Some(_) => Err((
            Problem::Structure {
                structure: Structure::IfUnclosed,
                command: commands.len() + 1,
            },
            None,
        )),
    }
}

fn step(commands: &mut [Command], at: usize, open: &mut Vec<Open>) -> Result<(), Structure> {
    match &commands[at].kind {
        CommandKind::If { .. } => open.push(Open {
            branch: at,
            later: Vec::new(),
            has_else: false,
        }),
        CommandKind::Elif { .. } => {
            let block = open.last_mut().ok_or(Structure::ElifWithoutIf)?;
            if block.has_else {
                return Err(Structure::ElifAfterElse);
            }
            set_otherwise(&mut commands[block.branch], at);
            block.branch = at;
            block.later.push(at);
        }
        CommandKind::Else { .. } => {
            let block = open.last_mut().ok_or(Structure::ElseWithoutIf)?;
            if block.has_else {
                return Err(Structure::ElseAfterElse);
            }
            block.has_else = true;
            set_otherwise(&mut commands[block.branch], at);
            block.branch = at;
            block.later.push(at);
        }
        CommandKind::Endif => {
            let block = open.pop().ok_or(Structure::EndifWithoutIf)?;
            set_otherwise(&mut commands[block.branch], at);
            for branch in block.later {
                set_end(&mut commands[branch], at);
            }
        }
        CommandKind::Sql(_)
        | CommandKind::Set { .. }
        | CommandKind::Sleep(_)
        | CommandKind::Shell(_)
        | CommandKind::SetShell { .. }
        | CommandKind::StartPipeline
        | CommandKind::SyncPipeline
        | CommandKind::EndPipeline => {}
    }
    Ok(())
}

fn set_otherwise(command: &mut Command, target: usize) {
    if let CommandKind::If { otherwise, .. } | CommandKind::Elif { otherwise, .. } =
        &mut command.kind
    {
        *otherwise = target;
    }
}

fn set_end(command: &mut Command, target: usize) {
    if let CommandKind::Elif { end, .. } | CommandKind::Else { end } = &mut command.kind {
        *end = target;
    }
}
