//! The client against a scripted broker, over sockets, and against whatever speaks the protocol.

mod suite;
