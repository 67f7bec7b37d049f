//! Matches the commands that open and close blocks (`\if`, `\elif`, `\else`, `\endif`; `\untimed`,
//! `\enduntimed`), and fills in where each conditional one jumps to.

use super::error::{Problem, Structure};
use super::{Command, CommandKind};

/// Resolves all jumps. The first thing that does not fit is an error, with its line.
pub(super) fn resolve(commands: &mut [Command]) -> Result<(), (Problem, Option<u64>)> {
    let mut blocks = Blocks::default();
    for at in 0..commands.len() {
        blocks.step(commands, at).map_err(|structure| {
            let command = at + 1;
            let problem = Problem::Structure { structure, command };
            (problem, Some(commands[at].line))
        })?;
    }
    let (structure, start) = match blocks.open.pop() {
        None => return Ok(()),
        Some(Block::Conditional(block)) => (Structure::IfUnclosed, block.start),
        Some(Block::Untimed { start }) => (Structure::UntimedUnclosed, start),
    };
    let command = commands.len() + 1;
    let line = Some(commands[start].line);
    Err((Problem::Structure { structure, command }, line))
}

#[derive(Default)]
struct Blocks {
    /// The innermost last.
    open: Vec<Block>,
    /// Whether a pipeline is open, as far as the order of the text tells.
    pipeline: bool,
}

enum Block {
    Conditional(Conditional),
    Untimed { start: usize },
}

struct Conditional {
    /// The `If`.
    start: usize,
    /// The branch that is entered last; where it goes on when its condition fails is not known yet.
    branch: usize,
    /// The branches behind the first, which are left for the end when the one above was taken.
    later: Vec<usize>,
    has_else: bool,
}

impl Blocks {
    fn step(&mut self, commands: &mut [Command], at: usize) -> Result<(), Structure> {
        match &commands[at].kind {
            CommandKind::If { .. } => self.open.push(Block::Conditional(Conditional {
                start: at,
                branch: at,
                later: Vec::new(),
                has_else: false,
            })),
            CommandKind::Elif { .. } => {
                let block = self.conditional(Structure::ElifWithoutIf)?;
                if block.has_else {
                    return Err(Structure::ElifAfterElse);
                }
                block.next_branch(commands, at);
            }
            CommandKind::Else { .. } => {
                let block = self.conditional(Structure::ElseWithoutIf)?;
                if block.has_else {
                    return Err(Structure::ElseAfterElse);
                }
                block.has_else = true;
                block.next_branch(commands, at);
            }
            CommandKind::Endif => {
                let block = self.conditional(Structure::EndifWithoutIf)?;
                block.end(commands, at);
                self.open.pop();
            }
            CommandKind::Untimed => self.begin_untimed(at)?,
            CommandKind::EndUntimed => self.end_untimed()?,
            CommandKind::StartPipeline => self.pipeline = true,
            CommandKind::EndPipeline => self.pipeline = false,
            CommandKind::Sql(_)
            | CommandKind::Set { .. }
            | CommandKind::Sleep(_)
            | CommandKind::Shell(_)
            | CommandKind::SetShell { .. }
            | CommandKind::Values(_)
            | CommandKind::SyncPipeline => {}
        }
        Ok(())
    }

    /// The conditional block that a branch or an end belongs to; an error if there is none.
    fn conditional(&mut self, missing: Structure) -> Result<&mut Conditional, Structure> {
        let any = self
            .open
            .iter()
            .any(|block| matches!(block, Block::Conditional(_)));
        match self.open.last_mut() {
            Some(Block::Conditional(block)) => Ok(block),
            Some(Block::Untimed { .. }) if any => Err(Structure::Crossing),
            Some(Block::Untimed { .. }) | None => Err(missing),
        }
    }

    fn untimed(&self) -> bool {
        self.open
            .iter()
            .any(|block| matches!(block, Block::Untimed { .. }))
    }

    fn begin_untimed(&mut self, start: usize) -> Result<(), Structure> {
        if self.untimed() {
            return Err(Structure::UntimedNested);
        }
        if self.pipeline {
            return Err(Structure::UntimedInPipeline);
        }
        self.open.push(Block::Untimed { start });
        Ok(())
    }

    fn end_untimed(&mut self) -> Result<(), Structure> {
        if self.pipeline {
            return Err(Structure::UntimedInPipeline);
        }
        match self.open.pop() {
            Some(Block::Untimed { .. }) => Ok(()),
            Some(Block::Conditional(_)) if self.untimed() => Err(Structure::Crossing),
            Some(Block::Conditional(_)) | None => Err(Structure::EndUntimedWithoutUntimed),
        }
    }
}

impl Conditional {
    fn next_branch(&mut self, commands: &mut [Command], at: usize) {
        set_otherwise(&mut commands[self.branch], at);
        self.branch = at;
        self.later.push(at);
    }

    fn end(&self, commands: &mut [Command], at: usize) {
        set_otherwise(&mut commands[self.branch], at);
        for &branch in &self.later {
            set_end(&mut commands[branch], at);
        }
    }
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
