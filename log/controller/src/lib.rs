//! thalweg-controller
