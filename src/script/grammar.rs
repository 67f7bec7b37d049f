//! The grammar of expressions: tokens in, [`Expr`] out, by precedence climbing.

use super::error::{Problem, Unexpected, nearest, shown};
use super::expression::{Expr, Is, Node};
use super::functions::{self, Arity, FUNCTIONS, Function};
use super::token::{Fault, Keyword, Symbol, Token, Tokens};
use super::value::Value;
use super::variables::TableBuilder;

/// How deeply parts of an expression may nest. Each level takes stack while parsing, evaluating and
/// dropping; a chain of operators, however long, is one level.
pub(super) const NESTING_MAX: usize = 2000;

/// Parses what is left of a meta command as one expression.
pub(super) fn parse(tokens: Tokens<'_>, table: &mut TableBuilder) -> Result<Expr, Fault> {
    let mut parser = Parser {
        tokens,
        token: Token::End,
        table,
        nesting: 0,
    };
    parser.advance()?;
    let node = parser.expression(Level::Or)?;
    match parser.token {
        Token::End => Ok(Expr(node)),
        _ => Err(parser.unexpected("an operator or the end of the line")),
    }
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

impl Level {
    fn tighter(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Not,
            Level::Not => Level::Is,
            Level::Is => Level::Comparison,
            Level::Comparison => Level::Bits,
            Level::Bits => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product | Level::Sign => Level::Sign,
        }
    }
}

/// What can follow an operand.
#[derive(Clone, Copy)]
enum Infix {
    And,
    Or,
    Is,
    IsNull,
    NotNull,
    Comparison(&'static Function),
    /// `>` and `>=`: the mirrored comparison, which evaluates the right operand first.
    Mirrored(&'static Function),
    Operator(&'static Function),
}

fn infix(token: Token<'_>) -> Option<(Level, Infix)> {
    match token {
        Token::Keyword(keyword) => infix_keyword(keyword),
        Token::Symbol(symbol) => infix_symbol(symbol),
        Token::Integer(_)
        | Token::IntegerMinimum
        | Token::Double(_)
        | Token::Variable(_)
        | Token::Name(_)
        | Token::End => None,
    }
}

fn infix_keyword(keyword: Keyword) -> Option<(Level, Infix)> {
    match keyword {
        Keyword::And => Some((Level::And, Infix::And)),
        Keyword::Or => Some((Level::Or, Infix::Or)),
        Keyword::Is => Some((Level::Is, Infix::Is)),
        Keyword::IsNull => Some((Level::Is, Infix::IsNull)),
        Keyword::NotNull => Some((Level::Is, Infix::NotNull)),
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

fn infix_symbol(symbol: Symbol) -> Option<(Level, Infix)> {
    use functions as f;
    Some(match symbol {
        Symbol::Less => (Level::Comparison, Infix::Comparison(&f::LESS)),
        Symbol::LessOrEqual => (Level::Comparison, Infix::Comparison(&f::LESS_OR_EQUAL)),
        Symbol::Greater => (Level::Comparison, Infix::Mirrored(&f::LESS)),
        Symbol::GreaterOrEqual => (Level::Comparison, Infix::Mirrored(&f::LESS_OR_EQUAL)),
        Symbol::Equal => (Level::Comparison, Infix::Comparison(&f::EQUAL)),
        Symbol::NotEqual => (Level::Comparison, Infix::Comparison(&f::NOT_EQUAL)),
        Symbol::Ampersand => (Level::Bits, Infix::Operator(&f::BIT_AND)),
        Symbol::Bar => (Level::Bits, Infix::Operator(&f::BIT_OR)),
        Symbol::Hash => (Level::Bits, Infix::Operator(&f::BIT_XOR)),
        Symbol::ShiftLeft => (Level::Bits, Infix::Operator(&f::SHIFT_LEFT)),
        Symbol::ShiftRight => (Level::Bits, Infix::Operator(&f::SHIFT_RIGHT)),
        Symbol::Plus => (Level::Sum, Infix::Operator(&f::ADD)),
        Symbol::Minus => (Level::Sum, Infix::Operator(&f::SUBTRACT)),
        Symbol::Star => (Level::Product, Infix::Operator(&f::MULTIPLY)),
        Symbol::Slash => (Level::Product, Infix::Operator(&f::DIVIDE)),
        Symbol::Percent => (Level::Product, Infix::Operator(&f::REMAINDER)),
        Symbol::Tilde | Symbol::Open | Symbol::Close | Symbol::Comma => return None,
    })
}

struct Parser<'a, 't> {
    tokens: Tokens<'a>,
    /// The token that is looked at next.
    token: Token<'a>,
    table: &'t mut TableBuilder,
    nesting: usize,
}

impl Parser<'_, '_> {
    fn advance(&mut self) -> Result<(), Fault> {
        self.token = self.tokens.next()?;
        Ok(())
    }

    fn unexpected(&self, expected: &'static str) -> Fault {
        let found = self.tokens.found();
        self.tokens
            .fault(Problem::Syntax(Unexpected { found, expected }))
    }

    fn take(&mut self, token: Token<'static>, expected: &'static str) -> Result<(), Fault> {
        if self.token != token {
            return Err(self.unexpected(expected));
        }
        self.advance()
    }

    fn take_if(&mut self, token: Token<'static>) -> Result<bool, Fault> {
        let found = self.token == token;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// An operand and all operators behind it that bind at least as tightly as `least`.
    fn expression(&mut self, least: Level) -> Result<Node, Fault> {
        if self.nesting == NESTING_MAX {
            return Err(self.tokens.fault(Problem::NestedTooDeeply(NESTING_MAX)));
        }
        self.nesting += 1;
        let mut left = self.operand()?;
        let mut compared = false;
        while let Some((level, infix)) = infix(self.token).filter(|&(level, _)| level >= least) {
            if level == Level::Comparison && compared {
                return Err(self.unexpected("parentheses: comparisons do not chain"));
            }
            self.advance()?;
            left = self.extend(left, level, infix)?;
            compared = level == Level::Comparison;
        }
        self.nesting -= 1;
        Ok(left)
    }

    /// Joins the operand on the left to what follows the operator.
    fn extend(&mut self, left: Node, level: Level, infix: Infix) -> Result<Node, Fault> {
        let is = |value, negated| Is { value, negated };
        Ok(match infix {
            Infix::And => Node::and(left, self.expression(level.tighter())?),
            Infix::Or => Node::or(left, self.expression(level.tighter())?),
            Infix::Comparison(function) => {
                Node::call(function, vec![left, self.expression(level.tighter())?])
            }
            Infix::Mirrored(function) => {
                Node::call(function, vec![self.expression(level.tighter())?, left])
            }
            Infix::Operator(function) => {
                Node::operator(left, function, self.expression(level.tighter())?)
            }
            Infix::IsNull => Node::is(left, is(Value::Null, false)),
            Infix::NotNull => Node::is(left, is(Value::Null, true)),
            Infix::Is => {
                let negated = self.take_if(Token::Keyword(Keyword::Not))?;
                let value = match self.token {
                    Token::Keyword(Keyword::Null) => Value::Null,
                    Token::Keyword(Keyword::True) => Value::Boolean(true),
                    Token::Keyword(Keyword::False) => Value::Boolean(false),
                    _ => return Err(self.unexpected("null, true or false")),
                };
                self.advance()?;
                Node::is(left, is(value, negated))
            }
        })
    }

    /// A literal, variable, call, CASE, parenthesis, or a prefix operator with its operand.
    fn operand(&mut self) -> Result<Node, Fault> {
        match self.token {
            Token::Integer(integer) => self.constant(Value::Integer(integer)),
            Token::Double(double) => self.constant(Value::Double(double)),
            Token::Variable(name) => {
                let slot = self.table.slot(name);
                self.advance()?;
                Ok(Node::Variable(slot))
            }
            Token::Name(name) => self.call(name),
            Token::Keyword(keyword) => self.keyword_operand(keyword),
            Token::Symbol(symbol) => self.symbol_operand(symbol),
            Token::IntegerMinimum | Token::End => Err(self.unexpected(A_VALUE)),
        }
    }

    fn constant(&mut self, value: Value) -> Result<Node, Fault> {
        self.advance()?;
        Ok(Node::Constant(value))
    }

    fn keyword_operand(&mut self, keyword: Keyword) -> Result<Node, Fault> {
        match keyword {
            Keyword::Null => self.constant(Value::Null),
            Keyword::True => self.constant(Value::Boolean(true)),
            Keyword::False => self.constant(Value::Boolean(false)),
            Keyword::Not => {
                self.advance()?;
                let operand = self.expression(Level::Not.tighter())?;
                Ok(Node::call(&functions::NOT, vec![operand]))
            }
            Keyword::Case => self.case(),
            Keyword::And
            | Keyword::Or
            | Keyword::Is
            | Keyword::IsNull
            | Keyword::NotNull
            | Keyword::When
            | Keyword::Then
            | Keyword::Else
            | Keyword::End => Err(self.unexpected(A_VALUE)),
        }
    }

    fn symbol_operand(&mut self, symbol: Symbol) -> Result<Node, Fault> {
        match symbol {
            Symbol::Minus => {
                self.advance()?;
                if self.token == Token::IntegerMinimum {
                    return self.constant(Value::Integer(i64::MIN));
                }
                let operand = self.expression(Level::Sign)?;
                let zero = Node::Constant(Value::Integer(0));
                Ok(Node::operator(zero, &functions::SUBTRACT, operand))
            }
            Symbol::Plus => {
                self.advance()?;
                self.expression(Level::Sign)
            }
            Symbol::Tilde => {
                self.advance()?;
                let operand = self.expression(Level::Bits.tighter())?;
                let ones = Node::Constant(Value::Integer(-1));
                Ok(Node::operator(operand, &functions::BIT_XOR, ones))
            }
            Symbol::Open => {
                self.advance()?;
                let inner = self.expression(Level::Or)?;
                self.take(Token::Symbol(Symbol::Close), "an operator or )")?;
                Ok(inner)
            }
            Symbol::Star
            | Symbol::Slash
            | Symbol::Percent
            | Symbol::Less
            | Symbol::LessOrEqual
            | Symbol::Greater
            | Symbol::GreaterOrEqual
            | Symbol::Equal
            | Symbol::NotEqual
            | Symbol::Ampersand
            | Symbol::Bar
            | Symbol::Hash
            | Symbol::ShiftLeft
            | Symbol::ShiftRight
            | Symbol::Close
            | Symbol::Comma => Err(self.unexpected(A_VALUE)),
        }
    }

    fn case(&mut self) -> Result<Node, Fault> {
        self.advance()?;
        let mut arms = Vec::new();
        while self.take_if(Token::Keyword(Keyword::When))? {
            let condition = self.expression(Level::Or)?;
            self.take(Token::Keyword(Keyword::Then), "an operator or THEN")?;
            arms.push((condition, self.expression(Level::Or)?));
        }
        if arms.is_empty() {
            return Err(self.unexpected("WHEN"));
        }
        let otherwise = if self.take_if(Token::Keyword(Keyword::Else))? {
            self.expression(Level::Or)?
        } else {
            Node::Constant(Value::Null)
        };
        self.take(
            Token::Keyword(Keyword::End),
            "an operator, WHEN, ELSE or END",
        )?;
        let otherwise = Box::new(otherwise);
        Ok(Node::Case { arms, otherwise })
    }

    fn call(&mut self, name: &[u8]) -> Result<Node, Fault> {
        let Some(function) = functions::find(name) else {
            return Err(self.tokens.fault(Problem::UnknownFunction {
                name: shown(name),
                nearest: nearest(name, FUNCTIONS.iter().map(|function| function.name)),
            }));
        };
        self.advance()?;
        self.take(Token::Symbol(Symbol::Open), "( and arguments")?;
        let mut arguments = self.arguments()?;
        if !function.arity.accepts(arguments.len()) {
            return Err(self.tokens.fault(Problem::ArgumentCount {
                function: function.name,
                arity: function.arity.to_string(),
            }));
        }
        self.advance()?;
        if function.arity == Arity::AndSeed(arguments.len()) {
            arguments.push(Node::Variable(self.table.slot(b"default_seed")));
        }
        Ok(Node::call(function, arguments))
    }

    /// Expressions with commas between them, up to the closing parenthesis, which stays. The first
    /// one may be missing as long as a comma follows.
    fn arguments(&mut self) -> Result<Vec<Node>, Fault> {
        const COMMA: Token<'static> = Token::Symbol(Symbol::Comma);
        const CLOSE: Token<'static> = Token::Symbol(Symbol::Close);
        let mut arguments = Vec::new();
        if self.token == CLOSE {
            return Ok(arguments);
        }
        if self.token != COMMA {
            arguments.push(self.expression(Level::Or)?);
        }
        while self.take_if(COMMA)? {
            arguments.push(self.expression(Level::Or)?);
        }
        if self.token != CLOSE {
            return Err(self.unexpected("an operator, a comma or )"));
        }
        Ok(arguments)
    }
}

const A_VALUE: &str = "a value";
