//! The client against a scripted broker, against sockets, and against whatever speaks the protocol.

mod suite;
