//! The grammar of expressions: tokens in, [`Expr`] out. Operators wait on a stack until what follows
//! binds less tightly; only parentheses, calls and CASE recurse.

use std::sync::Arc;

use super::error::{Problem, Unexpected, shown};
use super::expression::{Expr, Is, Program};
use super::functions::{self, Arity, Function};
use super::token::{Fault, Keyword, Symbol, Token, Tokens};
use super::value::Value;
use super::variables::TableBuilder;
use crate::spelling::nearest;

/// How deeply parentheses, calls and CASE may nest; each takes stack of the thread while parsing. A
/// chain of operators, however long, is one level.
pub(super) const NESTING_MAX: usize = 1000;

/// Parses what is left of a meta command as one expression.
pub(super) fn parse(tokens: Tokens<'_>, table: &mut TableBuilder) -> Result<Expr, Fault> {
    let mut parser = Parser {
        tokens,
        token: Token::End,
        table,
        operands: Vec::new(),
        pending: Vec::new(),
        nesting: 0,
    };
    parser.whole().map_err(|fault| *fault)?;
    Ok(parser.pop().finish())
}

/// Precedence, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Not,
    Is,
    Comparison,
    Bits,
    Sum,
    Product,
    Sign,
}

/// An operator that was read, and waits for the end of its right operand.
struct Pending {
    level: Level,
    operator: Operator,
}

enum Operator {
    Prefix(Prefix),
    Infix(Infix),
}

#[derive(Clone, Copy)]
enum Prefix {
    /// Zero less the operand.
    Minus,
    Not,
    /// An exclusive or with all ones.
    Complement,
}

#[derive(Clone, Copy)]
enum Infix {
    /// AND is decided by false, OR by true.
    Logic {
        decisive: bool,
    },
    Call(&'static Function),
    /// `>` and `>=`: the mirrored comparison, which evaluates the right operand first.
    Mirrored(&'static Function),
}

/// What can follow an operand.
#[derive(Clone, Copy)]
enum Next {
    /// An operator with an operand behind it.
    Infix(Infix),
    /// IS, with the test to come.
    Is,
    /// ISNULL, NOTNULL.
    IsNull { negated: bool },
}

fn next(token: Token<'_>) -> Option<(Level, Next)> {
    match token {
        Token::Keyword(keyword) => next_keyword(keyword),
        Token::Symbol(symbol) => next_symbol(symbol),
        Token::Integer(_)
        | Token::IntegerMinimum
        | Token::Double(_)
        | Token::Variable(_)
        | Token::Text(_)
        | Token::Name(_)
        | Token::End => None,
    }
}

fn next_keyword(keyword: Keyword) -> Option<(Level, Next)> {
    let logic = |decisive| Next::Infix(Infix::Logic { decisive });
    match keyword {
        Keyword::And => Some((Level::And, logic(false))),
        Keyword::Or => Some((Level::Or, logic(true))),
        Keyword::Is => Some((Level::Is, Next::Is)),
        Keyword::IsNull => Some((Level::Is, Next::IsNull { negated: false })),
        Keyword::NotNull => Some((Level::Is, Next::IsNull { negated: true })),
        Keyword::Not
        | Keyword::Case
        | Keyword::When
        | Keyword::Then
        | Keyword::Else
        | Keyword::End
        | Keyword::True
        | Keyword::False
        | Keyword::Null => None,
    }
}

fn next_symbol(symbol: Symbol) -> Option<(Level, Next)> {
    use functions as f;
    let (level, infix) = match symbol {
        Symbol::Less => (Level::Comparison, Infix::Call(&f::LESS)),
        Symbol::LessOrEqual => (Level::Comparison, Infix::Call(&f::LESS_OR_EQUAL)),
        Symbol::Greater => (Level::Comparison, Infix::Mirrored(&f::LESS)),
        Symbol::GreaterOrEqual => (Level::Comparison, Infix::Mirrored(&f::LESS_OR_EQUAL)),
        Symbol::Equal => (Level::Comparison, Infix::Call(&f::EQUAL)),
        Symbol::NotEqual => (Level::Comparison, Infix::Call(&f::NOT_EQUAL)),
        Symbol::Ampersand => (Level::Bits, Infix::Call(&f::BIT_AND)),
        Symbol::Bar => (Level::Bits, Infix::Call(&f::BIT_OR)),
        Symbol::Concatenate => (Level::Bits, Infix::Call(&f::CONCATENATE)),
        Symbol::Hash => (Level::Bits, Infix::Call(&f::BIT_XOR)),
        Symbol::ShiftLeft => (Level::Bits, Infix::Call(&f::SHIFT_LEFT)),
        Symbol::ShiftRight => (Level::Bits, Infix::Call(&f::SHIFT_RIGHT)),
        Symbol::Plus => (Level::Sum, Infix::Call(&f::ADD)),
        Symbol::Minus => (Level::Sum, Infix::Call(&f::SUBTRACT)),
        Symbol::Star => (Level::Product, Infix::Call(&f::MULTIPLY)),
        Symbol::Slash => (Level::Product, Infix::Call(&f::DIVIDE)),
        Symbol::Percent => (Level::Product, Infix::Call(&f::REMAINDER)),
        Symbol::Tilde | Symbol::Open | Symbol::Close | Symbol::Comma => return None,
    };
    Some((level, Next::Infix(infix)))
}

struct Parser<'a, 't> {
    tokens: Tokens<'a>,
    /// The token that is looked at next.
    token: Token<'a>,
    table: &'t mut TableBuilder,
    /// The programs of operands that were read, for operators, calls and CASE to take.
    operands: Vec<Program>,
    /// Operators of all expressions that are being read, the innermost last.
    pending: Vec<Pending>,
    nesting: usize,
}

/// What is read goes to the operands and faults are boxed, to keep the frames of the recursion small.
type Parsed<T = ()> = Result<T, Box<Fault>>;

impl Parser<'_, '_> {
    fn whole(&mut self) -> Parsed {
        self.advance()?;
        self.expression()?;
        if self.token != Token::End {
            return Err(self.unexpected("an operator or the end of the line"));
        }
        Ok(())
    }

    fn advance(&mut self) -> Parsed {
        self.token = self.tokens.next().map_err(Box::new)?;
        Ok(())
    }

    fn fault(&self, problem: Problem) -> Box<Fault> {
        Box::new(self.tokens.fault(problem))
    }

    fn unexpected(&self, expected: &'static str) -> Box<Fault> {
        let found = self.tokens.found();
        self.fault(Problem::Syntax(Unexpected { found, expected }))
    }

    fn take(&mut self, token: Token<'static>, expected: &'static str) -> Parsed {
        if self.token != token {
            return Err(self.unexpected(expected));
        }
        self.advance()
    }

    fn take_if(&mut self, token: Token<'static>) -> Parsed<bool> {
        let found = self.token == token;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Operands with operators between them, up to what is neither.
    fn expression(&mut self) -> Parsed {
        self.enter()?;
        let outer = self.pending.len();
        self.operand()?;
        while let Some((level, next)) = next(self.token) {
            self.end_pending(outer, level)?;
            self.advance()?;
            match next {
                Next::Infix(infix) => {
                    self.push_operator(level, Operator::Infix(infix));
                    self.operand()?;
                }
                Next::IsNull { negated } => self.test(Value::Null, negated),
                Next::Is => self.is()?,
            }
        }
        self.end_pending(outer, Level::Or)?;
        self.nesting -= 1;
        Ok(())
    }

    fn enter(&mut self) -> Parsed {
        if self.nesting == NESTING_MAX {
            return Err(self.fault(Problem::NestedTooDeeply(NESTING_MAX)));
        }
        self.nesting += 1;
        Ok(())
    }

    fn push_operator(&mut self, level: Level, operator: Operator) {
        self.pending.push(Pending { level, operator });
    }

    fn pop(&mut self) -> Program {
        self.operands
            .pop()
            .expect("whoever takes an operand has read it before")
    }

    /// Applies the operators of this expression that bind at least as tightly as the one that is
    /// there now: all infix operators group from the left, but comparisons do not group at all.
    fn end_pending(&mut self, outer: usize, level: Level) -> Parsed {
        while self.pending.len() > outer
            && let Some(last) = self.pending.pop_if(|last| last.level >= level)
        {
            if last.level == Level::Comparison && level == Level::Comparison {
                return Err(self.unexpected("parentheses: comparisons do not chain"));
            }
            self.apply(last.operator);
        }
        Ok(())
    }

    fn apply(&mut self, operator: Operator) {
        let integer = |value| Program::constant(Value::Integer(value));
        let right = self.pop();
        let program = match operator {
            Operator::Prefix(Prefix::Minus) => {
                self.call_of(&functions::SUBTRACT, vec![integer(0), right])
            }
            Operator::Prefix(Prefix::Not) => self.call_of(&functions::NOT, vec![right]),
            Operator::Prefix(Prefix::Complement) => {
                self.call_of(&functions::BIT_XOR, vec![right, integer(-1)])
            }
            Operator::Infix(Infix::Logic { decisive }) => self.pop().short_circuit(decisive, right),
            Operator::Infix(Infix::Call(function)) => {
                let left = self.pop();
                self.call_of(function, vec![left, right])
            }
            Operator::Infix(Infix::Mirrored(function)) => {
                let left = self.pop();
                self.call_of(function, vec![right, left])
            }
        };
        self.operands.push(program);
    }

    fn call_of(&self, function: &'static Function, arguments: Vec<Program>) -> Program {
        Program::call(self.tokens.dialect(), function, arguments)
    }

    fn is(&mut self) -> Parsed {
        let negated = self.take_if(Token::Keyword(Keyword::Not))?;
        let value = if self.token == Token::Keyword(Keyword::Null) {
            Value::Null
        } else if self.token == Token::Keyword(Keyword::True) {
            Value::Boolean(true)
        } else if self.token == Token::Keyword(Keyword::False) {
            Value::Boolean(false)
        } else {
            return Err(self.unexpected("null, true or false"));
        };
        self.test(value, negated);
        self.advance()
    }

    fn test(&mut self, value: Value, negated: bool) {
        let tested = self.pop().is(Is { value, negated });
        self.operands.push(tested);
    }

    /// Prefix operators, which are pending then, and a literal, variable, call, CASE or parenthesis.
    fn operand(&mut self) -> Parsed {
        loop {
            let (level, prefix) = match self.token {
                Token::Symbol(Symbol::Plus) => {
                    self.advance()?;
                    continue;
                }
                Token::Symbol(Symbol::Minus) => (Level::Sign, Prefix::Minus),
                Token::Symbol(Symbol::Tilde) => (Level::Bits, Prefix::Complement),
                Token::Keyword(Keyword::Not) => (Level::Not, Prefix::Not),
                token => return self.primary(token),
            };
            self.advance()?;
            if self.token == Token::IntegerMinimum && level == Level::Sign {
                return self.constant(Value::Integer(i64::MIN));
            }
            self.push_operator(level, Operator::Prefix(prefix));
        }
    }

    fn primary(&mut self, token: Token<'_>) -> Parsed {
        match token {
            Token::Integer(integer) => self.constant(Value::Integer(integer)),
            Token::Double(double) => self.constant(Value::Double(double)),
            Token::Variable(name) => {
                let slot = self.table.slot(name);
                self.operands.push(Program::variable(slot));
                self.advance()
            }
            Token::Text(quoted) => self.constant(Value::Text(unquoted(quoted))),
            Token::Name(name) => self.call(name),
            Token::Keyword(Keyword::Null) => self.constant(Value::Null),
            Token::Keyword(Keyword::True) => self.constant(Value::Boolean(true)),
            Token::Keyword(Keyword::False) => self.constant(Value::Boolean(false)),
            Token::Keyword(Keyword::Case) => self.case(),
            Token::Symbol(Symbol::Open) => self.parenthesis(),
            Token::Keyword(_) | Token::Symbol(_) | Token::IntegerMinimum | Token::End => {
                Err(self.unexpected("a value"))
            }
        }
    }

    fn constant(&mut self, value: Value) -> Parsed {
        self.operands.push(Program::constant(value));
        self.advance()
    }

    fn parenthesis(&mut self) -> Parsed {
        self.advance()?;
        self.expression()?;
        self.take(Token::Symbol(Symbol::Close), "an operator or )")
    }

    fn case(&mut self) -> Parsed {
        self.advance()?;
        let mut arms = 0;
        while self.take_if(Token::Keyword(Keyword::When))? {
            self.expression()?;
            self.take(Token::Keyword(Keyword::Then), "an operator or THEN")?;
            self.expression()?;
            arms += 1;
        }
        if arms == 0 {
            return Err(self.unexpected("WHEN"));
        }
        if self.take_if(Token::Keyword(Keyword::Else))? {
            self.expression()?;
        } else {
            self.operands.push(Program::constant(Value::Null));
        }
        self.end_case(arms);
        self.take(
            Token::Keyword(Keyword::End),
            "an operator, WHEN, ELSE or END",
        )
    }

    /// Puts arms together, the last one first: each ends where the rest does.
    fn end_case(&mut self, arms: usize) {
        let mut rest = self.pop();
        for _ in 0..arms {
            let value = self.pop();
            let condition = self.pop();
            rest = Program::arm(condition, value, rest);
        }
        self.operands.push(rest);
    }

    fn call(&mut self, name: &[u8]) -> Parsed {
        let function = self.function(name)?;
        self.advance()?;
        self.take(Token::Symbol(Symbol::Open), "( and arguments")?;
        let first = self.operands.len();
        self.arguments()?;
        self.check_arity(function, self.operands.len() - first)?;
        self.end_call(function, first);
        self.advance()
    }

    fn end_call(&mut self, function: &'static Function, first: usize) {
        let mut arguments = self.operands.split_off(first);
        if function.arity == Arity::AndSeed(arguments.len()) {
            arguments.push(Program::variable(self.table.slot(b"default_seed")));
        }
        self.operands.push(self.call_of(function, arguments));
    }

    fn check_arity(&self, function: &Function, arguments: usize) -> Parsed {
        if function.arity.accepts(arguments) {
            return Ok(());
        }
        Err(self.fault(Problem::ArgumentCount {
            function: function.name,
            arity: function.arity.to_string(),
        }))
    }

    fn function(&self, name: &[u8]) -> Parsed<&'static Function> {
        functions::find(name, self.tokens.dialect()).ok_or_else(|| {
            self.fault(Problem::UnknownFunction {
                name: shown(name),
                nearest: nearest(
                    name,
                    functions::known(self.tokens.dialect()).map(|function| function.name),
                ),
            })
        })
    }

    /// Expressions with commas between them, up to the closing parenthesis, which stays. The first
    /// one may be missing as long as a comma follows.
    fn arguments(&mut self) -> Parsed {
        const COMMA: Token<'static> = Token::Symbol(Symbol::Comma);
        const CLOSE: Token<'static> = Token::Symbol(Symbol::Close);
        if self.token == CLOSE {
            return Ok(());
        }
        if self.token != COMMA {
            self.expression()?;
        }
        while self.take_if(COMMA)? {
            self.expression()?;
        }
        if self.token != CLOSE {
            return Err(self.unexpected("an operator, a comma or )"));
        }
        Ok(())
    }
}

/// What a text literal means: doubled quotes are single ones.
fn unquoted(quoted: &[u8]) -> Arc<[u8]> {
    let mut quote = false;
    quoted
        .iter()
        .copied()
        .filter(|&byte| {
            quote = byte == b'\'' && !quote;
            !quote
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::random::Generator;
    use crate::script::variables::Automatic;
    use crate::script::{Dialect, EvalContext, EvalError, Place};

    fn parsed(text: &str) -> Result<(Expr, TableBuilder), Fault> {
        let mut table = TableBuilder::default();
        let expression = parse(
            Tokens::new(Dialect::Extended, text.as_bytes(), 0, true),
            &mut table,
        )?;
        Ok((expression, table))
    }

    /// The value with `:v` = 1 defined.
    fn value(text: &str) -> Result<Value, EvalError> {
        value_with(text, &[("v", "1")])
    }

    /// The value where these variables are set from text.
    pub(in crate::script) fn value_with(
        text: &str,
        defined: &[(&str, &str)],
    ) -> Result<Value, EvalError> {
        let (expression, mut table) = parsed(text).unwrap_or_else(|fault| panic!("{fault:?}"));
        for (name, value) in defined {
            table.define(name.as_bytes(), value.as_bytes());
        }
        let mut variables = table.finish(Dialect::Extended).initial(&Automatic {
            scale: 1,
            client_id: 0,
            default_seed: None,
            random_seed: 0,
            thread_id: 0,
        });
        let mut context = EvalContext {
            variables: &mut variables,
            generator: &mut Generator::new(0),
            messages: &mut |_| {},
            place: Place {
                script: 0,
                command: 0,
            },
            unix_time_us: 1_700_000_000_123_456,
        };
        expression.evaluate(&mut context)
    }

    #[test]
    fn operators_bind_as_they_should() {
        for (text, expected) in [
            ("1 is null = false is true", "coerce-boolean-to-int"),
            ("2 + 1 is null is false", "true"),
            ("2 is null + 1", "coerce-boolean-to-int"),
            ("- not 1 is null", "coerce-boolean-to-int"),
            ("1 + not true", "coerce-boolean-to-int"),
            ("~ 1 | 6", "-2"),
            ("1 < not 2 < 1", "coerce-boolean-to-int"),
            ("2 * 3 + 4 * 5 - 6", "20"),
            ("100 / 7 % 5 * 2", "8"),
            ("(1 < 2) is true and not 2 < 1", "true"),
            ("- - + - :v", "-1"),
            (
                "case when :v = 2 then 5 when :v < 2 then 6 else 7 end * 2",
                "12",
            ),
            (":v = 1 or 1 / 0 = 1", "true"),
            ("1 / (:v - 1)", "div-by-zero"),
        ] {
            let mut found = Vec::new();
            match value(text) {
                Ok(value) => value.append_text(&mut found),
                Err(error) => found.extend_from_slice(error.code().as_bytes()),
            }
            assert_eq!(shown(&found), expected, "{text}");
        }
    }

    #[test]
    fn constants_are_folded_unless_that_fails() {
        for (text, folds) in [
            ("1 + 2 * 3", true),
            ("greatest(1, abs(-2)) > 1", true),
            ("-(5)", true),
            ("null + 1", true),
            ("1 / 0", false),
            ("debug(1)", false),
            ("random(1, 1)", false),
            ("hash(1)", false),
            ("hash(1, 2)", true),
        ] {
            let (expression, _) = parsed(text).unwrap_or_else(|fault| panic!("{fault:?}"));
            assert_eq!(expression.is_constant(), folds, "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded_and_the_bound_is_safe() {
        for (open, close) in [
            ("(", ")"),
            ("1+(", ")"),
            ("2 > (", ")"),
            ("true or true and 1 = 1 | 1 + 1 * (", ")"),
            ("abs(", ")"),
            ("least(1,2,3,4,", ")"),
            ("case when true then ", " end"),
            ("case when ", " then 1 end"),
        ] {
            let nested = |depth: usize| format!("{}:v{}", open.repeat(depth), close.repeat(depth));
            let result = value(&nested(NESTING_MAX - 1));
            assert!(
                matches!(result, Ok(_) | Err(EvalError::Coerce { .. })),
                "{open}: {result:?}"
            );
            let fault = parsed(&nested(100_000)).expect_err("too deep");
            assert_eq!(fault.problem.code(), "nested-too-deeply", "{open}");
        }
    }

    #[test]
    fn chains_may_be_long() {
        for (prefix, operator) in [
            ("", "+ :v "),
            ("", "and true "),
            ("", "or false "),
            ("", "is not null "),
            ("not ", ""),
            ("- ", ""),
            ("~ ", ""),
        ] {
            let text = format!("{}:v {}", prefix.repeat(50_000), operator.repeat(50_000));
            let result = value(&text);
            assert!(
                result.is_ok() || matches!(result, Err(EvalError::Coerce { .. })),
                "{prefix}{operator}"
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_parses_evaluates_or_fails(
            parts in proptest::collection::vec(prop_oneof![
                Just("1 "), Just("0 "), Just("2.5 "), Just("-9223372036854775808 "), Just("'a' "),
                Just("null "), Just("true "), Just(":v "), Just(":u "), Just("( "), Just(") "),
                Just(", "), Just("+ "), Just("- "), Just("* "), Just("/ "), Just("% "), Just("|| "),
                Just("<< "), Just("~ "), Just("= "), Just("> "), Just("and "), Just("or "),
                Just("not "), Just("is null "), Just("case when "), Just("then "), Just("else "),
                Just("end "), Just("random("), Just("abs("), Just("least("), Just("permute("),
                Just("hash("), Just("substr("), Just("lpad("), Just("random_element("),
            ], 1..12)
        ) {
            let text = parts.concat();
            if parsed(&text).is_ok()
                && let Err(error) = value(&text)
            {
                prop_assert!(!error.to_string().is_empty() && error.code() != "coerce");
            }
        }
    }

    #[test]
    fn arguments_may_lack_the_first() {
        assert_eq!(value("abs(, -5)"), Ok(Value::Integer(5)));
        for (text, code) in [
            ("abs(-5,)", "syntax"),
            ("abs(,)", "syntax"),
            ("least(,,1)", "syntax"),
            ("least(1 2)", "syntax"),
            ("random(1)", "arg-count"),
            ("pi(1)", "arg-count"),
        ] {
            let fault = parsed(text).expect_err(text);
            assert_eq!(fault.problem.code(), code, "{text}");
        }
    }
}
