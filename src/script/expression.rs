//! Expressions as trees, and their evaluation. Chains of operators are kept flat, so that the depth
//! of a tree is bounded by how deeply its source nests, however long it is.

use super::error::EvalError;
use super::functions::{Eval, Function, Nulls};
use super::value::Value;
use super::variables::{Slot, Variables};
use crate::random::Generator;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expr(pub(super) Node);

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

impl Expr {
    /// Its value. Allocates nothing as long as only numbers are involved.
    pub fn evaluate(&self, context: &mut EvalContext<'_>) -> Result<Value, EvalError> {
        self.0.evaluate(context)
    }

    /// Whether it holds as a condition.
    pub fn truth(&self, context: &mut EvalContext<'_>) -> Result<bool, EvalError> {
        self.evaluate(context)?.truth()
    }
}

/// A node of the tree.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Constant(Value),
    Variable(Slot),
    Call {
        function: &'static Function,
        arguments: Vec<Node>,
    },
    /// Binary operators applied from left to right, each to what the ones before it gave.
    Chain {
        first: Box<Node>,
        rest: Vec<(&'static Function, Node)>,
    },
    /// AND: ends at the first operand that is null or false.
    All(Vec<Node>),
    /// OR: ends at the first operand that is null or true.
    Any(Vec<Node>),
    /// IS-tests, each applied to what the ones before it gave.
    Is {
        operand: Box<Node>,
        tests: Vec<Is>,
    },
    /// CASE: the first arm whose condition holds.
    Case {
        arms: Vec<(Node, Node)>,
        otherwise: Box<Node>,
    },
}

/// One `IS [NOT] …`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Is {
    pub value: Value,
    pub negated: bool,
}

/// The most arguments that a function can be called with; more are an error while running.
pub(super) const ARGUMENTS_MAX: usize = 16;

impl Node {
    /// A call; of a pure function with constant arguments its result, unless it fails: that is an
    /// error of the run, and only if the run gets there.
    pub fn call(function: &'static Function, arguments: Vec<Node>) -> Node {
        fold(Node::Call {
            function,
            arguments,
        })
    }

    /// A binary operator, appended to a chain that is there already.
    pub fn operator(left: Node, function: &'static Function, right: Node) -> Node {
        match left {
            Node::Chain { first, mut rest } => {
                rest.push((function, right));
                Node::Chain { first, rest }
            }
            left => fold(Node::Chain {
                first: Box::new(left),
                rest: vec![(function, right)],
            }),
        }
    }

    /// `left AND right`.
    pub fn and(left: Node, right: Node) -> Node {
        match left {
            Node::All(mut operands) => {
                operands.push(right);
                Node::All(operands)
            }
            left => Node::All(vec![left, right]),
        }
    }

    /// `left OR right`.
    pub fn or(left: Node, right: Node) -> Node {
        match left {
            Node::Any(mut operands) => {
                operands.push(right);
                Node::Any(operands)
            }
            left => Node::Any(vec![left, right]),
        }
    }

    /// `operand IS …`.
    pub fn is(operand: Node, test: Is) -> Node {
        match operand {
            Node::Is { operand, mut tests } => {
                tests.push(test);
                Node::Is { operand, tests }
            }
            operand => Node::Is {
                operand: Box::new(operand),
                tests: vec![test],
            },
        }
    }

    fn evaluate(&self, context: &mut EvalContext<'_>) -> Result<Value, EvalError> {
        match self {
            Node::Constant(value) => Ok(value.clone()),
            Node::Variable(slot) => context.variables.value(*slot),
            Node::Call {
                function,
                arguments,
            } => evaluate_call(function, arguments, context),
            Node::Chain { first, rest } => {
                let mut left = first.evaluate(context)?;
                for (function, right) in rest {
                    let right = right.evaluate(context)?;
                    left = function.apply(context, &[left, right])?;
                }
                Ok(left)
            }
            Node::All(operands) => evaluate_until(operands, false, context),
            Node::Any(operands) => evaluate_until(operands, true, context),
            Node::Is { operand, tests } => {
                let value = operand.evaluate(context)?;
                Ok(tests.iter().fold(value, |value, test| test.apply(&value)))
            }
            Node::Case { arms, otherwise } => {
                for (condition, value) in arms {
                    if condition.evaluate(context)?.truth()? {
                        return value.evaluate(context);
                    }
                }
                otherwise.evaluate(context)
            }
        }
    }
}

impl Is {
    fn apply(&self, value: &Value) -> Value {
        Value::Boolean((*value == self.value) != self.negated)
    }
}

/// Evaluates operands until one is null or the `last` truth value, which is then the result.
fn evaluate_until(
    operands: &[Node],
    last: bool,
    context: &mut EvalContext<'_>,
) -> Result<Value, EvalError> {
    for operand in operands {
        let value = operand.evaluate(context)?;
        if value.is_null() {
            return Ok(Value::Null);
        }
        if value.boolean()? == last {
            return Ok(Value::Boolean(last));
        }
    }
    Ok(Value::Boolean(!last))
}

fn evaluate_call(
    function: &Function,
    arguments: &[Node],
    context: &mut EvalContext<'_>,
) -> Result<Value, EvalError> {
    // Nearly all calls have few arguments; a small array is cheaper to make and to drop.
    const FEW: usize = 3;
    if arguments.len() <= FEW {
        evaluate_arguments::<FEW>(function, arguments, context)
    } else {
        evaluate_arguments::<ARGUMENTS_MAX>(function, arguments, context)
    }
}

fn evaluate_arguments<const MAX: usize>(
    function: &Function,
    arguments: &[Node],
    context: &mut EvalContext<'_>,
) -> Result<Value, EvalError> {
    let mut values = [const { Value::Null }; MAX];
    for (index, argument) in arguments.iter().enumerate() {
        *values
            .get_mut(index)
            .ok_or(EvalError::TooManyArguments(ARGUMENTS_MAX))? = argument.evaluate(context)?;
    }
    function.apply(context, &values[..arguments.len()])
}

impl Function {
    /// Calls it with evaluated arguments, minding the null rule.
    #[inline]
    fn apply(
        &self,
        context: &mut EvalContext<'_>,
        arguments: &[Value],
    ) -> Result<Value, EvalError> {
        if self.nulls == Nulls::GiveNull && arguments.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        match self.eval {
            Eval::Pure(eval) => eval(arguments),
            Eval::InContext(eval) => eval(context, arguments),
        }
    }
}

/// Replaces a pure call of constants by its result.
fn fold(node: Node) -> Node {
    let folded = match &node {
        Node::Call {
            function,
            arguments,
        } if arguments.len() <= ARGUMENTS_MAX => {
            let values: Option<Vec<Value>> = arguments.iter().map(constant).collect();
            values.and_then(|values| apply_pure(function, &values))
        }
        Node::Chain { first, rest } => match &rest[..] {
            [(function, right)] => constant(first)
                .zip(constant(right))
                .and_then(|(left, right)| apply_pure(function, &[left, right])),
            _ => None,
        },
        Node::Constant(_)
        | Node::Variable(_)
        | Node::Call { .. }
        | Node::All(_)
        | Node::Any(_)
        | Node::Is { .. }
        | Node::Case { .. } => None,
    };
    folded.map_or(node, Node::Constant)
}

fn constant(node: &Node) -> Option<Value> {
    match node {
        Node::Constant(value) => Some(value.clone()),
        Node::Variable(_)
        | Node::Call { .. }
        | Node::Chain { .. }
        | Node::All(_)
        | Node::Any(_)
        | Node::Is { .. }
        | Node::Case { .. } => None,
    }
}

fn apply_pure(function: &Function, arguments: &[Value]) -> Option<Value> {
    match function.eval {
        Eval::Pure(_)
            if function.nulls == Nulls::GiveNull && arguments.iter().any(Value::is_null) =>
        {
            Some(Value::Null)
        }
        Eval::Pure(eval) => eval(arguments).ok(),
        Eval::InContext(_) => None,
    }
}
