//! thalweg-examples
