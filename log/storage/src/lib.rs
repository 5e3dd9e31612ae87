//! thalweg-storage
