//! thalweg-streams
