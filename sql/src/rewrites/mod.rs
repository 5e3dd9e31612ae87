//! Changes to statements before DataFusion plans them: one rule a file.

mod hidden_columns;

pub(crate) use hidden_columns::hide_columns;
