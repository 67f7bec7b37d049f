//! Expressions as programs of a small stack machine. A program is flat, so neither evaluating nor
//! dropping one needs stack of the thread, however deeply its source nests.

use super::error::EvalError;
use super::functions::{Eval, Function, Nulls};
use super::value::Value;
use super::variables::{Slot, Variables};
use crate::random::Generator;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    steps: Box<[Step]>,
}

/// What an evaluation may use and change.
pub struct EvalContext<'a> {
    /// The variables of the client.
    pub variables: &'a mut Variables,
    /// The stream of the client.
    pub generator: &'a mut Generator,
    /// Takes the lines that `debug()` writes, without line ends.
    pub messages: &'a mut dyn FnMut(&[u8]),
    /// The command that is executed.
    pub place: Place,
}

/// A command of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the script, from 0.
    pub script: usize,
    /// Index of the command in its script, from 0.
    pub command: usize,
}

/// One step of a program. Jumps go forward, and are relative so that programs can be joined.
#[derive(Clone, Debug)]
enum Step {
    /// Pushes a constant.
    Constant(Value),
    /// Pushes the value of a variable.
    Variable(Slot),
    /// Replaces arguments by the result.
    Call {
        function: &'static Function,
        arguments: usize,
    },
    /// AND and OR: a null or the `decisive` truth value stays as the result, and the other operand
    /// is skipped; else it is popped.
    ShortCircuit { decisive: bool, skip: usize },
    /// Where AND and OR end: the result must be a boolean or null.
    Boolean,
    /// Replaces a value by the result of a test.
    Is(Is),
    /// Pops a condition and skips what depends on it unless it holds.
    SkipUnless { skip: usize },
    /// Skips the other branches.
    Skip { skip: usize },
    /// Where the branches of CASE meet. What stands before it is one branch, not the value.
    Join,
}

impl Step {
    fn constant(&self) -> Option<Value> {
        if let Step::Constant(value) = self {
            Some(value.clone())
        } else {
            None
        }
    }
}

/// One `IS [NOT] …`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Is {
    pub value: Value,
    pub negated: bool,
}

/// The most arguments that a function can be called with; more are an error while running.
const ARGUMENTS_MAX: usize = 16;

impl Expr {
    /// Its value. Allocates nothing as long as only numbers are involved.
    pub fn evaluate(&self, context: &mut EvalContext<'_>) -> Result<Value, EvalError> {
        // The machine's stack is kept with the variables, so that it grows only once.
        let mut stack = std::mem::take(&mut context.variables.stack);
        let result = self.run(&mut stack, context);
        stack.clear();
        context.variables.stack = stack;
        result
    }

    /// Whether it holds as a condition.
    pub fn truth(&self, context: &mut EvalContext<'_>) -> Result<bool, EvalError> {
        self.evaluate(context)?.truth()
    }

    fn run(
        &self,
        stack: &mut Vec<Value>,
        context: &mut EvalContext<'_>,
    ) -> Result<Value, EvalError> {
        let mut at = 0;
        while let Some(step) = self.steps.get(at) {
            at += 1;
            match step {
                Step::Constant(value) => stack.push(value.clone()),
                Step::Variable(slot) => stack.push(context.variables.value(*slot)?),
                Step::Call {
                    function,
                    arguments,
                } => {
                    let first = stack.len() - arguments;
                    let result = function.apply(context, &stack[first..])?;
                    stack.truncate(first);
                    stack.push(result);
                }
                Step::ShortCircuit { decisive, skip } => {
                    let decided = match top(stack) {
                        Value::Null => true,
                        value => value.boolean()? == *decisive,
                    };
                    if decided {
                        at += skip;
                    } else {
                        stack.pop();
                    }
                }
                Step::Boolean => {
                    let value = top(stack);
                    if !value.is_null() {
                        value.boolean()?;
                    }
                }
                Step::Is(is) => {
                    let value = top(stack);
                    *value = Value::Boolean((*value == is.value) != is.negated);
                }
                Step::SkipUnless { skip } => {
                    let holds = top(stack).truth()?;
                    stack.pop();
                    if !holds {
                        at += skip;
                    }
                }
                Step::Skip { skip } => at += skip,
                Step::Join => {}
            }
        }
        Ok(std::mem::replace(top(stack), Value::Null))
    }
}

fn top(stack: &mut [Value]) -> &mut Value {
    stack
        .last_mut()
        .expect("each step finds the operands that the steps before it left")
}

impl Function {
    /// Calls it with evaluated arguments, minding the null rule.
    #[inline]
    fn apply(
        &self,
        context: &mut EvalContext<'_>,
        arguments: &[Value],
    ) -> Result<Value, EvalError> {
        if arguments.len() > ARGUMENTS_MAX {
            return Err(EvalError::TooManyArguments(ARGUMENTS_MAX));
        }
        if self.gives_null(arguments) {
            return Ok(Value::Null);
        }
        match self.eval {
            Eval::Pure(eval) => eval(arguments),
            Eval::InContext(eval) => eval(context, arguments),
        }
    }

    fn gives_null(&self, arguments: &[Value]) -> bool {
        self.nulls == Nulls::GiveNull && arguments.iter().any(Value::is_null)
    }
}

/// Writes a program, step by step as the source is read.
#[derive(Debug, Default)]
pub(super) struct Program {
    steps: Vec<Step>,
}

/// A jump whose target is not known yet.
#[must_use]
pub(super) struct OpenSkip(usize);

impl Program {
    pub fn constant(&mut self, value: Value) {
        self.steps.push(Step::Constant(value));
    }

    pub fn variable(&mut self, slot: Slot) {
        self.steps.push(Step::Variable(slot));
    }

    pub fn is(&mut self, test: Is) {
        self.steps.push(Step::Is(test));
    }

    /// A call; of a pure function with constant arguments its result, unless it fails: that is an
    /// error of the run, and only if the run gets there.
    pub fn call(&mut self, function: &'static Function, arguments: usize) {
        match self.fold(function, arguments) {
            Some(value) => {
                self.steps.truncate(self.steps.len() - arguments);
                self.constant(value);
            }
            None => self.steps.push(Step::Call {
                function,
                arguments,
            }),
        }
    }

    fn fold(&self, function: &Function, arguments: usize) -> Option<Value> {
        let Eval::Pure(eval) = function.eval else {
            return None;
        };
        if arguments > ARGUMENTS_MAX {
            return None;
        }
        let first = self.steps.len() - arguments;
        let constants: Vec<Value> = self.steps[first..]
            .iter()
            .map(Step::constant)
            .collect::<Option<_>>()?;
        if function.gives_null(&constants) {
            return Some(Value::Null);
        }
        eval(&constants).ok()
    }

    /// Begins AND (decided by false) or OR (decided by true) behind its left operand.
    pub fn short_circuit(&mut self, decisive: bool) -> OpenSkip {
        self.open(Step::ShortCircuit { decisive, skip: 0 })
    }

    /// Ends AND or OR behind its right operand.
    pub fn end_short_circuit(&mut self, open: OpenSkip) {
        self.close(open);
        self.steps.push(Step::Boolean);
    }

    /// Begins what depends on the condition written last.
    pub fn skip_unless(&mut self) -> OpenSkip {
        self.open(Step::SkipUnless { skip: 0 })
    }

    /// Begins what is skipped after the branch written last.
    pub fn skip(&mut self) -> OpenSkip {
        self.open(Step::Skip { skip: 0 })
    }

    /// Ends all branches of a CASE.
    pub fn join(&mut self, open: Vec<OpenSkip>) {
        for skip in open {
            self.close(skip);
        }
        self.steps.push(Step::Join);
    }

    fn open(&mut self, step: Step) -> OpenSkip {
        self.steps.push(step);
        OpenSkip(self.steps.len())
    }

    /// Makes an open jump lead to what is written next.
    pub fn close(&mut self, OpenSkip(from): OpenSkip) {
        let distance = self.steps.len() - from;
        if let Step::ShortCircuit { skip, .. } | Step::SkipUnless { skip } | Step::Skip { skip } =
            &mut self.steps[from - 1]
        {
            *skip = distance;
        }
    }

    /// Where the next step will be written.
    pub fn position(&self) -> usize {
        self.steps.len()
    }

    /// Takes back what was written from a position on, to [`Program::append`] it later.
    pub fn split_off(&mut self, position: usize) -> Program {
        Program {
            steps: self.steps.split_off(position),
        }
    }

    pub fn append(&mut self, other: Program) {
        self.steps.extend(other.steps);
    }

    pub fn finish(self) -> Expr {
        Expr {
            steps: self.steps.into_boxed_slice(),
        }
    }
}

#[cfg(test)]
impl Expr {
    /// Whether nothing is left to compute.
    pub(super) fn is_constant(&self) -> bool {
        matches!(self.steps[..], [Step::Constant(_)])
    }
}
