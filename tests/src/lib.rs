//! thalweg-tests
