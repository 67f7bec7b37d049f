//! Variables: one table of names for all scripts of a run, and one set of values a client. Names
//! become slots while scripts are parsed, so that nothing is looked up by name while they run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::BufMut;

use super::Dialect;
use super::error::{EvalError, shown};
use super::value::{NoValue, Quote, Value, guess};

/// The place of a variable; the same in all scripts and for all clients of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(u32);

impl Slot {
    #[inline]
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// All names that the scripts of a run mention, and the definitions that every client starts with.
#[derive(Clone, Debug)]
pub struct VariableTable {
    names: Arc<Names>,
    defined: Vec<(Slot, Vec<u8>)>,
    thread_id: Option<Slot>,
    transaction: Option<Slot>,
}

/// The automatic variables of one client. A definition of the same name wins over each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Automatic {
    /// `:scale`
    pub scale: i64,
    /// `:client_id`, from 0 over all threads.
    pub client_id: u32,
    /// `:default_seed`, the same for all clients; none where it was not drawn.
    pub default_seed: Option<u64>,
    /// `:random_seed`, the base seed.
    pub random_seed: u64,
    /// `:thread_id`, from 0; pgbench does not have it.
    pub thread_id: u32,
}

impl VariableTable {
    /// The variables with which a client starts.
    pub fn initial(&self, automatic: &Automatic) -> Variables {
        let mut variables = Variables {
            names: Arc::clone(&self.names),
            values: vec![Variable::Undefined; self.names.list.len()],
            stack: Vec::new(),
        };
        let seed = |seed: u64| Value::Integer(seed.cast_signed());
        let client_id = Value::Integer(i64::from(automatic.client_id));
        let values = [
            (&b"scale"[..], Some(Value::Integer(automatic.scale))),
            (b"client_id", Some(client_id)),
            (b"default_seed", automatic.default_seed.map(seed)),
            (b"random_seed", Some(seed(automatic.random_seed))),
        ];
        for (name, value) in values {
            if let (Some(slot), Some(value)) = (self.slot(name), value) {
                variables.values[slot.index()] = Variable::Value(value);
            }
        }
        if let Some(slot) = self.thread_id {
            let thread_id = Value::Integer(i64::from(automatic.thread_id));
            variables.values[slot.index()] = Variable::Value(thread_id);
        }
        for (slot, text) in &self.defined {
            variables.values[slot.index()] = Variable::text(text);
        }
        variables
    }

    /// Whether the user defined a variable of this name (which for `default_seed` shifts the
    /// random streams).
    pub fn is_defined(&self, name: &[u8]) -> bool {
        self.slot(name)
            .is_some_and(|slot| self.defined.iter().any(|&(defined, _)| defined == slot))
    }

    /// The variable to which the number of the transaction within its client (from 1) is to be set
    /// as each one begins; none if no script uses it, or if one or the user sets it to something
    /// else. pgbench does not have it.
    pub fn transaction(&self) -> Option<Slot> {
        self.transaction
    }

    /// The slot of a name, if any script or definition mentions it.
    pub fn slot(&self, name: &[u8]) -> Option<Slot> {
        self.names.slots.get(name).copied()
    }

    /// The name of a slot.
    pub fn name(&self, slot: Slot) -> &[u8] {
        &self.names.list[slot.index()]
    }
}

/// Gives out slots while scripts are parsed; becomes the [`VariableTable`].
#[derive(Debug, Default)]
pub(super) struct TableBuilder {
    names: Names,
    defined: Vec<(Slot, Vec<u8>)>,
    assigned: HashSet<Slot>,
}

impl TableBuilder {
    /// The slot of a name, a new one if it was not mentioned before.
    pub fn slot(&mut self, name: &[u8]) -> Slot {
        if let Some(&slot) = self.names.slots.get(name) {
            return slot;
        }
        let number = u32::try_from(self.names.list.len()).expect("script texts are far below 4 GB");
        let slot = Slot(number);
        self.names.list.push(name.into());
        self.names.slots.insert(name.into(), slot);
        slot
    }

    /// Defines a variable for all clients; a later definition of the same name wins.
    pub fn define(&mut self, name: &[u8], value: &[u8]) {
        let slot = self.slot(name);
        self.defined.retain(|&(defined, _)| defined != slot);
        self.defined.push((slot, value.to_vec()));
    }

    /// The slot of a name that a script sets.
    pub fn assigned_slot(&mut self, name: &[u8]) -> Slot {
        let slot = self.slot(name);
        self.assigned.insert(slot);
        slot
    }

    pub fn finish(self, dialect: Dialect) -> VariableTable {
        let (thread_id, transaction) = match dialect {
            Dialect::Extended => (self.free(b"thread_id"), self.free(b"transaction")),
            Dialect::Pgbench => (None, None),
        };
        VariableTable {
            names: Arc::new(self.names),
            defined: self.defined,
            thread_id,
            transaction,
        }
    }

    /// The slot of a name that scripts use and nobody sets.
    fn free(&self, name: &[u8]) -> Option<Slot> {
        let slot = self.names.slots.get(name).copied()?;
        let set = self.assigned.contains(&slot)
            || self.defined.iter().any(|&(defined, _)| defined == slot);
        (!set).then_some(slot)
    }
}

#[derive(Clone, Debug, Default)]
struct Names {
    list: Vec<Box<[u8]>>,
    slots: HashMap<Box<[u8]>, Slot>,
}

/// Whether a variable may be created under this name: a letter, underscore or any byte from 0x80
/// on, then these or digits.
pub fn is_valid_name(name: &[u8]) -> bool {
    name.first().is_some_and(|&byte| is_letter(byte)) && name.iter().all(|&byte| is_name_byte(byte))
}

/// ASCII letters, underscore, and all bytes of multi-byte characters.
#[inline]
pub(super) fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// What may follow the first letter of a name.
#[inline]
pub(super) fn is_name_byte(byte: u8) -> bool {
    is_letter(byte) || byte.is_ascii_digit()
}

/// How many bytes at the beginning may be of one name. The first may be a digit here.
pub(super) fn name_length(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| is_name_byte(byte)).count()
}

/// The variables of one client. They live as long as the client: over transactions, scripts,
/// reconnects and retries.
#[derive(Clone, Debug)]
pub struct Variables {
    names: Arc<Names>,
    values: Vec<Variable>,
    /// Where expressions of this client are evaluated; worthless in between.
    pub(super) stack: Vec<Value>,
}

#[derive(Clone, Debug)]
enum Variable {
    Undefined,
    /// Set by an expression.
    Value(Value),
    /// Set from outside. Its text stays as it is; the value that it stands for is guessed when an
    /// expression first asks.
    Text {
        text: Vec<u8>,
        guess: Option<Value>,
    },
}

impl Variable {
    fn text(text: &[u8]) -> Self {
        Variable::Text {
            text: text.to_vec(),
            guess: None,
        }
    }
}

impl Variables {
    /// Sets a variable to a value. Fails if the variable is new and its name invalid.
    #[inline]
    pub fn set(&mut self, slot: Slot, value: Value) -> Result<(), EvalError> {
        if !self.is_defined(slot) {
            self.check_creation(slot)?;
        }
        self.values[slot.index()] = Variable::Value(value);
        Ok(())
    }

    /// Sets a variable from text (a column of a result). Fails like [`Variables::set`].
    pub fn set_text(&mut self, slot: Slot, text: &[u8]) -> Result<(), EvalError> {
        self.check_creation(slot)?;
        match &mut self.values[slot.index()] {
            // The common case keeps its buffer.
            Variable::Text { text: old, guess } => {
                old.clear();
                old.extend_from_slice(text);
                *guess = None;
            }
            variable @ (Variable::Undefined | Variable::Value(_)) => {
                *variable = Variable::text(text);
            }
        }
        Ok(())
    }

    /// The slot for a variable whose name is known only now (a column of a result). None if no
    /// script mentions it, so that its value matters to nobody; an invalid new name is an error.
    pub fn resolve(&self, name: &[u8]) -> Result<Option<Slot>, EvalError> {
        match self.names.slots.get(name) {
            Some(&slot) => self.check_creation(slot).map(|()| Some(slot)),
            None if is_valid_name(name) => Ok(None),
            None => Err(EvalError::BadVariableName(shown(name))),
        }
    }

    /// The value of a variable that an expression has set; there is nothing to guess then.
    #[inline]
    pub(super) fn known(&self, slot: Slot) -> Option<&Value> {
        match &self.values[slot.index()] {
            Variable::Value(value) => Some(value),
            Variable::Undefined | Variable::Text { .. } => None,
        }
    }

    /// The value of a variable in an expression.
    pub fn value(&mut self, slot: Slot) -> Result<Value, EvalError> {
        let names = &self.names;
        match &mut self.values[slot.index()] {
            Variable::Undefined => Err(undefined(names, slot)),
            Variable::Value(value) => Ok(value.clone()),
            Variable::Text {
                guess: Some(value), ..
            } => Ok(value.clone()),
            Variable::Text {
                text,
                guess: guessed,
            } => {
                let value = guess(text).map_err(|why| no_value(names, slot, text, why))?;
                *guessed = Some(value.clone());
                Ok(value)
            }
        }
    }

    /// The value of a variable where text is wanted: text from outside is not guessed from.
    pub(super) fn text_value(&mut self, slot: Slot) -> Result<Value, EvalError> {
        match &self.values[slot.index()] {
            Variable::Text { text, .. } => Ok(Value::Text(Arc::from(&text[..]))),
            Variable::Undefined | Variable::Value(_) => self.value(slot),
        }
    }

    /// The value of a variable where text will do: text from outside stays text if there is nothing
    /// to guess from it.
    pub(super) fn value_or_text(&mut self, slot: Slot) -> Result<Value, EvalError> {
        self.value(slot).or_else(|_| self.text_value(slot))
    }

    /// Whether the variable has a value, be it null.
    #[inline]
    pub fn is_defined(&self, slot: Slot) -> bool {
        !matches!(self.values[slot.index()], Variable::Undefined)
    }

    /// Appends the text of a variable and says so; appends nothing if it is undefined.
    pub fn append_text(&self, slot: Slot, out: &mut impl BufMut) -> bool {
        match &self.values[slot.index()] {
            Variable::Undefined => return false,
            Variable::Value(value) => value.append_text(out),
            Variable::Text { text, .. } => out.put_slice(text),
        }
        true
    }

    /// Appends the text of a variable between quotes, null as the word without them, and says so;
    /// appends nothing if it is undefined.
    pub(super) fn append_quoted(&self, slot: Slot, quote: Quote, out: &mut impl BufMut) -> bool {
        match &self.values[slot.index()] {
            Variable::Undefined => return false,
            Variable::Value(Value::Null) => Value::Null.append_text(out),
            Variable::Text { text, .. } => quote.append(text, out),
            Variable::Value(Value::Text(text)) => quote.append(text, out),
            Variable::Value(value @ (Value::Boolean(_) | Value::Integer(_) | Value::Double(_))) => {
                out.put_u8(quote.byte());
                value.append_text(out);
                out.put_u8(quote.byte());
            }
        }
        true
    }

    /// Appends the text of a variable as a parameter to bind. Appends nothing and returns false if
    /// SQL NULL is to be bound: for an undefined variable, and for one that an expression made null.
    pub fn append_parameter(&self, slot: Slot, out: &mut impl BufMut) -> bool {
        match &self.values[slot.index()] {
            Variable::Value(Value::Null) => false,
            Variable::Undefined | Variable::Value(_) | Variable::Text { .. } => {
                self.append_text(slot, out)
            }
        }
    }

    /// The text of a variable; an error if it is undefined.
    pub(super) fn text(&self, slot: Slot) -> Result<Vec<u8>, EvalError> {
        let mut text = Vec::new();
        if self.append_text(slot, &mut text) {
            Ok(text)
        } else {
            Err(undefined(&self.names, slot))
        }
    }

    /// The name of a slot.
    pub fn name(&self, slot: Slot) -> &[u8] {
        &self.names.list[slot.index()]
    }

    fn check_creation(&self, slot: Slot) -> Result<(), EvalError> {
        let name = self.name(slot);
        if self.is_defined(slot) || is_valid_name(name) {
            Ok(())
        } else {
            Err(EvalError::BadVariableName(shown(name)))
        }
    }
}

fn undefined(names: &Names, slot: Slot) -> EvalError {
    EvalError::UndefinedVariable(shown(&names.list[slot.index()]))
}

fn no_value(names: &Names, slot: Slot, text: &[u8], why: NoValue) -> EvalError {
    let name = shown(&names.list[slot.index()]);
    let text = shown(text);
    match why {
        NoValue::Empty => EvalError::EmptyVariable(name),
        NoValue::IntegerRange => EvalError::VariableIntegerRange { name, text },
        NoValue::Unknown => EvalError::BadVariableValue { name, text },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTOMATIC: Automatic = Automatic {
        scale: 7,
        client_id: 3,
        default_seed: Some(u64::MAX),
        random_seed: 42,
        thread_id: 5,
    };

    fn text(variables: &Variables, slot: Slot) -> String {
        shown(&variables.text(slot).expect("defined"))
    }

    #[test]
    fn definitions_win_over_automatic_variables_and_the_last_one_wins() {
        let mut builder = TableBuilder::default();
        let scale = builder.slot(b"scale");
        let seed = builder.slot(b"default_seed");
        builder.define(b"scale", b"1");
        builder.define(b"scale", b"007");
        let table = builder.finish(Dialect::Extended);
        let variables = table.initial(&AUTOMATIC);
        assert_eq!(text(&variables, scale), "007");
        assert_eq!(text(&variables, seed), "-1");
        assert!(table.is_defined(b"scale"));
        assert!(!table.is_defined(b"default_seed"));
        assert!(!table.is_defined(b"nobody"));
    }

    #[test]
    fn text_stays_text_after_an_expression_has_used_it() {
        let mut builder = TableBuilder::default();
        let slot = builder.slot(b"v");
        let mut variables = builder.finish(Dialect::Extended).initial(&AUTOMATIC);
        variables.set_text(slot, b"+3").expect("valid name");
        assert_eq!(variables.value(slot), Ok(Value::Integer(3)));
        assert_eq!(text(&variables, slot), "+3");
        variables.set_text(slot, b"4").expect("valid name");
        assert_eq!(variables.value(slot), Ok(Value::Integer(4)));
    }

    #[test]
    fn variables_that_pgbench_lacks_give_way_to_those_of_the_script() {
        let build = |dialect, set_it: bool| {
            let mut builder = TableBuilder::default();
            let slot = builder.slot(b"thread_id");
            builder.slot(b"transaction");
            if set_it {
                builder.assigned_slot(b"thread_id");
                builder.define(b"transaction", b"1");
            }
            let table = builder.finish(dialect);
            let defined = table.initial(&AUTOMATIC).is_defined(slot);
            (defined, table.transaction().is_some())
        };
        assert_eq!(build(Dialect::Extended, false), (true, true));
        assert_eq!(build(Dialect::Extended, true), (false, false));
        assert_eq!(build(Dialect::Pgbench, false), (false, false));
        let unused = TableBuilder::default().finish(Dialect::Extended);
        assert_eq!(unused.transaction(), None);
    }

    #[test]
    fn only_valid_names_are_created() {
        for (name, valid) in [
            (&b"a"[..], true),
            (b"_1", true),
            (b"\xc3\xa9", true),
            (b"1a", false),
            (b"?column?", false),
            (b"a-b", false),
            (b"", false),
        ] {
            let mut builder = TableBuilder::default();
            let slot = builder.slot(name);
            let mut variables = builder.finish(Dialect::Extended).initial(&AUTOMATIC);
            assert_eq!(variables.set(slot, Value::Null).is_ok(), valid, "{name:?}");
            assert_eq!(variables.set_text(slot, b"").is_ok(), valid, "{name:?}");
            assert_eq!(variables.resolve(name).is_ok(), valid, "{name:?}");
        }
    }

    #[test]
    fn null_of_an_expression_is_bound_as_null_and_substituted_as_a_word() {
        let mut builder = TableBuilder::default();
        let slot = builder.slot(b"v");
        let mut variables = builder.finish(Dialect::Extended).initial(&AUTOMATIC);
        let mut out = Vec::new();
        assert!(!variables.append_text(slot, &mut out));
        assert!(!variables.append_parameter(slot, &mut out));
        variables.set(slot, Value::Null).expect("valid name");
        assert!(!variables.append_parameter(slot, &mut out));
        assert!(out.is_empty());
        assert!(variables.append_text(slot, &mut out));
        assert_eq!(out, b"NULL");
        variables.set_text(slot, b"").expect("valid name");
        assert!(variables.append_parameter(slot, &mut out));
    }
}
