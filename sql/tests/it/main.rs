//! Tests of SQL over an embedded broker.
