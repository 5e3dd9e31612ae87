//! Enums of what brokers write as words.

/// Makes an enum of words; one that is not known is kept as it is.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// One that this client does not know, as the broker wrote it.
            Other(bytestring::ByteString),
        }

        impl $name {
            /// As brokers write it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<bytestring::ByteString> for $name {
            fn from(text: bytestring::ByteString) -> Self {
                match text {
                    $(text if text.eq_ignore_ascii_case($text) => Self::$variant,)*
                    text => Self::Other(text),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(super) use named;
