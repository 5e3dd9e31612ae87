//! thalweg-broker
