//! Transactions: who may use a transactional id, which partitions it has written to, and how it ends.
#![allow(dead_code, unused_imports)]

mod end;
mod init_producer_id;
mod partitions;
mod state;

#[cfg(test)]
mod tests;
