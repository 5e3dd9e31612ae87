//! thalweg-connectors
