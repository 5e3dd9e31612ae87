//! thalweg-sql
