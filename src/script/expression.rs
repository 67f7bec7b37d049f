//! Expressions as programs of a small stack machine. A program is flat, so neither evaluating nor
//! dropping one needs stack of the thread, however deeply its source nests.

use std::collections::VecDeque;

use super::Dialect;
use super::error::EvalError;
use super::functions::{Eval, Function, Nulls, TextArguments};
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
    /// The time, in microseconds since 1970 (UTC).
    pub unix_time_us: u64,
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
    Variable { slot: Slot, reading: Reading },
    /// Before a call whose arguments may be text: if one is, all that are variables set from text
    /// are read as text; if only some are then, there is no text wanted.
    Agree { variables: Box<[Option<Slot>]> },
    /// Replaces arguments by the result.
    Call {
        function: &'static Function,
        arguments: usize,
    },
    /// The same where all arguments are constants, which stay where they are.
    CallConstants {
        function: &'static Function,
        arguments: Box<[Value]>,
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
}

/// What the value of a variable that was set from text is. Other variables have one value only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// What can be guessed from the text; an error if that is nothing.
    Guess,
    /// The same, but the text if that is nothing.
    GuessOrText,
    /// The text.
    Text,
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
        // A bare draw of a random number, the commonest of all, needs no machine.
        if let [
            Step::CallConstants {
                function,
                arguments,
            },
        ] = &*self.steps
        {
            return function.apply(context, arguments);
        }
        // The machine's stack is kept with the variables, so that it grows only once.
        let mut stack = std::mem::take(&mut context.variables.stack);
        stack.clear();
        let outcome = self.run(&mut stack, context);
        context.variables.stack = stack;
        outcome.map(|()| copied(top(&mut context.variables.stack)))
    }

    /// Whether it holds as a condition.
    pub fn truth(&self, context: &mut EvalContext<'_>) -> Result<bool, EvalError> {
        self.evaluate(context)?.truth()
    }

    /// Leaves the value on the stack.
    fn run(&self, stack: &mut Vec<Value>, context: &mut EvalContext<'_>) -> Result<(), EvalError> {
        let mut at = 0;
        while let Some(step) = self.steps.get(at) {
            at += 1;
            match step {
                Step::Constant(value) => stack.push(copied(value)),
                Step::Variable { slot, reading } => match context.variables.known(*slot) {
                    Some(value) => stack.push(copied(value)),
                    None => stack.push(reading.value(context.variables, *slot)?),
                },
                Step::Agree { variables } => {
                    let first = stack.len() - variables.len();
                    agree(&mut stack[first..], variables, context.variables)?;
                }
                Step::Call {
                    function,
                    arguments,
                } => {
                    let first = stack.len() - arguments;
                    let result = function.apply(context, &stack[first..]);
                    stack.truncate(first);
                    match result {
                        Ok(Value::Integer(integer)) => stack.push(Value::Integer(integer)),
                        Ok(value) => stack.push(value),
                        Err(error) => return Err(error),
                    }
                }
                Step::CallConstants {
                    function,
                    arguments,
                } => stack.push(function.apply(context, arguments)?),
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
            }
        }
        Ok(())
    }
}

impl Reading {
    fn value(self, variables: &mut Variables, slot: Slot) -> Result<Value, EvalError> {
        match self {
            Reading::Guess => variables.value(slot),
            Reading::GuessOrText => variables.value_or_text(slot),
            Reading::Text => variables.text_value(slot),
        }
    }
}

/// Makes arguments either text or none of them. `slots` has those that are variables.
fn agree(
    arguments: &mut [Value],
    slots: &[Option<Slot>],
    variables: &mut Variables,
) -> Result<(), EvalError> {
    let is_text = |value: &Value| matches!(value, Value::Text(_));
    if !arguments.iter().any(is_text) {
        return Ok(());
    }
    let others_are_text = arguments
        .iter()
        .zip(slots)
        .all(|(argument, slot)| slot.is_some() || is_text(argument) || argument.is_null());
    for (argument, slot) in arguments.iter_mut().zip(slots) {
        if let Some(slot) = *slot {
            *argument = match others_are_text {
                true => variables.text_value(slot)?,
                false => variables.value(slot)?,
            };
        }
    }
    Ok(())
}

/// A copy. Numbers are taken apart and put together: copied as a whole, a value would be read wider
/// than it was just written, and the processor would have to wait for that.
#[inline(always)]
fn copied(value: &Value) -> Value {
    match value {
        Value::Integer(integer) => Value::Integer(*integer),
        Value::Double(double) => Value::Double(*double),
        Value::Null | Value::Boolean(_) | Value::Text(_) => value.clone(),
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

/// The program of a part of an expression while it is parsed. Parts are joined by moving the
/// shorter one, so that it takes next to linear time however they are nested.
#[derive(Debug, Default)]
pub(super) struct Program {
    steps: VecDeque<Step>,
}

impl Program {
    pub fn constant(value: Value) -> Self {
        Program::step(Step::Constant(value))
    }

    pub fn variable(slot: Slot) -> Self {
        Program::step(Step::Variable {
            slot,
            reading: Reading::Guess,
        })
    }

    fn step(step: Step) -> Self {
        Program {
            steps: VecDeque::from([step]),
        }
    }

    /// A call; of a pure function with constant arguments its result, unless it fails: that is an
    /// error of the run, and only if the run gets there.
    pub fn call(
        dialect: Dialect,
        function: &'static Function,
        mut arguments: Vec<Program>,
    ) -> Self {
        let agree = match dialect {
            Dialect::Extended => take_text(function.text, &mut arguments),
            Dialect::Pgbench => None,
        };
        if let Some(constants) = constants(&arguments) {
            return match fold(function, &constants) {
                Some(value) => Program::constant(value),
                None => Program::step(Step::CallConstants {
                    function,
                    arguments: constants,
                }),
            };
        }
        let call = Step::Call {
            function,
            arguments: arguments.len(),
        };
        let program = arguments
            .into_iter()
            .fold(Program::default(), Program::then);
        match agree {
            Some(agree) => program.push(agree).push(call),
            None => program.push(call),
        }
    }

    /// AND, which false decides, or OR, which true decides.
    pub fn short_circuit(self, decisive: bool, right: Program) -> Self {
        let skip = right.steps.len();
        self.push(Step::ShortCircuit { decisive, skip })
            .then(right)
            .push(Step::Boolean)
    }

    /// A test of its value.
    pub fn is(self, test: Is) -> Self {
        self.push(Step::Is(test))
    }

    /// An arm of CASE: the value if the condition holds, else what the rest gives.
    pub fn arm(condition: Program, value: Program, rest: Program) -> Self {
        let branch = value.push(Step::Skip {
            skip: rest.steps.len(),
        });
        let skip = branch.steps.len();
        condition
            .push(Step::SkipUnless { skip })
            .then(branch)
            .then(rest)
    }

    fn push(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }

    fn then(mut self, mut next: Program) -> Self {
        if self.steps.len() >= next.steps.len() {
            self.steps.append(&mut next.steps);
            return self;
        }
        for step in self.steps.into_iter().rev() {
            next.steps.push_front(step);
        }
        next
    }

    pub fn finish(self) -> Expr {
        Expr {
            steps: Vec::from(self.steps).into_boxed_slice(),
        }
    }
}

/// Lets arguments that are variables be read as text where the function takes it. Returns the step
/// that has to come before the call.
fn take_text(text: TextArguments, arguments: &mut [Program]) -> Option<Step> {
    let wanted = match text {
        TextArguments::None => return None,
        TextArguments::At(indices) => {
            for &index in indices {
                if let Some(argument) = arguments.get_mut(index) {
                    argument.read_variable(Reading::Text);
                }
            }
            return None;
        }
        TextArguments::Alike => Reading::GuessOrText,
    };
    let variables: Box<[Option<Slot>]> = arguments
        .iter_mut()
        .map(|argument| argument.read_variable(wanted))
        .collect();
    let any = variables.iter().any(Option::is_some);
    any.then_some(Step::Agree { variables })
}

/// The values of the arguments, if all of them are constants.
fn constants(arguments: &[Program]) -> Option<Box<[Value]>> {
    arguments.iter().map(Program::as_constant).collect()
}

fn fold(function: &Function, arguments: &[Value]) -> Option<Value> {
    let Eval::Pure(eval) = function.eval else {
        return None;
    };
    if arguments.len() > ARGUMENTS_MAX {
        return None;
    }
    if function.gives_null(arguments) {
        return Some(Value::Null);
    }
    eval(arguments).ok()
}

impl Program {
    /// If it is nothing but a variable, says how that is read, and returns it.
    fn read_variable(&mut self, how: Reading) -> Option<Slot> {
        if self.steps.len() == 1
            && let Step::Variable { slot, reading } = &mut self.steps[0]
        {
            *reading = how;
            Some(*slot)
        } else {
            None
        }
    }

    fn as_constant(&self) -> Option<Value> {
        if self.steps.len() == 1
            && let Step::Constant(value) = &self.steps[0]
        {
            Some(value.clone())
        } else {
            None
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
