//! What the table of APIs becomes: [`ApiKey`], [`Request`], [`Response`] and [`Api`].

use std::ops::RangeInclusive;

/// A request, and with it the type of the response to it.
pub trait Api: Into<super::Request> {
    /// What the broker answers.
    type Response: Into<super::Response> + TryFrom<super::Response, Error = WrongResponse>;

    /// The key that stands for the API in a request's header.
    const KEY: super::ApiKey;

    /// The versions that can be encoded and decoded.
    const VERSIONS: RangeInclusive<i16>;

    /// The request as one of all.
    fn into_request(self) -> super::Request {
        self.into()
    }
}

/// There is no API for clients with this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown API key {0}")]
pub struct UnknownApi(pub i16);

/// The response is one of another API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a response of {got} instead of one of {expected}")]
pub struct WrongResponse {
    /// The API that was called.
    pub expected: super::ApiKey,
    /// The API of the response.
    pub got: super::ApiKey,
}

/// Makes `ApiKey`, `Request`, `Response` and their conversions from one line for each API.
macro_rules! apis {
    ($(
        $api:ident = $key:literal, $module:ident::{$request:ident, $response:ident},
        versions $first:literal..=$last:literal, stable $stable:literal, flexible $flexible:expr;
    )*) => {
        /// The number of an API in the header of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ApiKey {
            $(
                #[doc = concat!("Versions ", $first, " to ", $last, ".")]
                $api = $key,
            )*
        }

        impl ApiKey {
            /// Every API, ascending by key.
            pub const ALL: &[Self] = &[$(Self::$api),*];

            /// The API's name, as in Kafka's documentation.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$api => stringify!($api),)*
                }
            }

            /// The versions that can be encoded and decoded.
            pub fn versions(self) -> RangeInclusive<i16> {
                match self {
                    $(Self::$api => $first..=$last,)*
                }
            }

            /// The last version that may be advertised: what follows may still change.
            pub fn last_stable_version(self) -> i16 {
                match self {
                    $(Self::$api => $stable,)*
                }
            }

            /// The first version with compact lengths and tagged fields; `i16::MAX` if there is none.
            pub fn flexible_from(self) -> i16 {
                match self {
                    $(Self::$api => $flexible,)*
                }
            }
        }

        impl TryFrom<i16> for ApiKey {
            type Error = UnknownApi;

            fn try_from(key: i16) -> Result<Self, UnknownApi> {
                match key {
                    $($key => Ok(Self::$api),)*
                    _ => Err(UnknownApi(key)),
                }
            }
        }

        impl fmt::Display for ApiKey {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        /// Any request.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Request {
            $(
                #[doc = concat!("Key ", $key, ".")]
                $api($module::$request),
            )*
        }

        impl Request {
            /// The API that is called.
            pub fn api_key(&self) -> ApiKey {
                match self {
                    $(Self::$api(_) => ApiKey::$api,)*
                }
            }

            pub(crate) fn decode(api: ApiKey, d: &mut Decoder) -> Result<Self, DecodeError> {
                match api {
                    $(ApiKey::$api => $module::$request::decode(d).map(Self::$api),)*
                }
            }

            pub(crate) fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
                match self {
                    $(Self::$api(request) => request.encode(e),)*
                }
            }
        }

        /// Any response.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Response {
            $(
                #[doc = concat!("Key ", $key, ".")]
                $api($module::$response),
            )*
        }

        impl Response {
            /// The API that was called.
            pub fn api_key(&self) -> ApiKey {
                match self {
                    $(Self::$api(_) => ApiKey::$api,)*
                }
            }

            pub(crate) fn decode(api: ApiKey, d: &mut Decoder) -> Result<Self, DecodeError> {
                match api {
                    $(ApiKey::$api => $module::$response::decode(d).map(Self::$api),)*
                }
            }

            pub(crate) fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
                match self {
                    $(Self::$api(response) => response.encode(e),)*
                }
            }
        }

        $(
            impl Api for $module::$request {
                type Response = $module::$response;

                const KEY: ApiKey = ApiKey::$api;
                const VERSIONS: RangeInclusive<i16> = $first..=$last;
            }

            impl From<$module::$request> for Request {
                fn from(request: $module::$request) -> Self {
                    Self::$api(request)
                }
            }

            impl From<$module::$response> for Response {
                fn from(response: $module::$response) -> Self {
                    Self::$api(response)
                }
            }

            impl TryFrom<Response> for $module::$response {
                type Error = WrongResponse;

                fn try_from(response: Response) -> Result<Self, WrongResponse> {
                    match response {
                        Response::$api(response) => Ok(response),
                        other => Err(WrongResponse { expected: ApiKey::$api, got: other.api_key() }),
                    }
                }
            }
        )*
    };
}

pub(super) use apis;
