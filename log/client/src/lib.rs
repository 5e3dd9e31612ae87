//! thalweg-client
