//! What may be reached, and what may reach in.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ByteSize;
use crate::units::as_text;

/// The network of an action. Empty: there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Rules of which one must cover a request that goes out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<Egress>,
    /// Ports of the environment that may be reached through Glovebox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ingress: Vec<Ingress>,
}

/// One way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Egress {
    /// The hosts.
    pub host: HostPattern,
    /// The ports; at least one.
    pub ports: Vec<u16>,
    /// The HTTP methods. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<String>>,
    /// Prefixes of the HTTP path, each starting with `/`. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Bytes in both directions together. Absent: the ceiling's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<ByteSize>,
    /// Connections at one time. Absent: the ceiling's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// What is done with TLS.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub tls: Tls,
}

/// What is done with TLS on the way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tls {
    /// It passes unopened; only the host can be seen and promised.
    #[default]
    Tunnel,
    /// It is opened by an authority of the environment's own, so that
    /// methods, paths and secrets can be seen to.
    Terminate,
}

/// One way in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ingress {
    /// The port inside the environment.
    pub port: u16,
    /// What is spoken on it.
    pub protocol: Protocol,
}

/// What is spoken on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1 or HTTP/2, through the server's door.
    Http,
    /// Any bytes.
    Tcp,
}

/// Host names: `api.example.com`, `*.example.com` (one or more labels below),
/// `**.example.com` (that and the name itself), or an IP literal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// Exactly this name or address, in lower case.
    Exact(String),
    /// Every name below this one.
    Below(String),
    /// This name and every name below it.
    AtOrBelow(String),
}

impl HostPattern {
    /// Whether this pattern covers a name or address, given in lower case.
    pub fn covers(&self, host: &str) -> bool {
        let below = |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'));
        match self {
            Self::Exact(name) => host == name,
            Self::Below(name) => below(name),
            Self::AtOrBelow(name) => host == name || below(name),
        }
    }

    /// Whether every host that this pattern covers is covered by the other.
    pub fn within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(name), other) => other.covers(name),
            (Self::Below(name), Self::Below(outer)) => name == outer || other.covers(name),
            (Self::Below(name) | Self::AtOrBelow(name), Self::AtOrBelow(_)) => other.covers(name),
            (Self::AtOrBelow(name), Self::Below(_)) => other.covers(name),
            (Self::Below(_) | Self::AtOrBelow(_), Self::Exact(_)) => false,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::AtOrBelow(name) => write!(f, "**.{name}"),
        }
    }
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>() {
            return Ok(Self::Exact(address.to_string()));
        }
        let (make, name): (fn(String) -> Self, &str) = if let Some(name) = text.strip_prefix("**.") {
            (Self::AtOrBelow, name)
        } else if let Some(name) = text.strip_prefix("*.") {
            (Self::Below, name)
        } else {
            (Self::Exact, text)
        };
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        // A last label of digits would be read as an IPv4 address by resolvers.
        let numeric = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
        if name.len() <= 253 && name.split('.').all(label) && !numeric {
            Ok(make(name.to_owned()))
        } else {
            Err(format!(
                "`{}` is not a host: write a lower-case name, `*.name`, `**.name` or an IP address, without scheme, port and path",
                crate::ids::shown(text)
            ))
        }
    }
}

as_text!(
    HostPattern,
    "HostPattern",
    "^[^:/ ]+$|^[0-9a-f:]+$",
    "A host: name, *.name (below), **.name (at or below) or an IP address."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_what_they_say() {
        for (pattern, host, covered) in [
            ("a.example.com", "a.example.com", true),
            ("a.example.com", "b.a.example.com", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "b.a.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "badexample.com", false),
            ("**.example.com", "example.com", true),
            ("**.example.com", "a.example.com", true),
            ("**.example.com", "badexample.com", false),
            ("*.example.com", ".example.com", false),
        ] {
            assert_eq!(pattern.parse::<HostPattern>().unwrap().covers(host), covered, "{pattern} {host}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            "https://a.com",
            "a.com:443",
            "a.com/x",
            "A.com",
            "*",
            "*.",
            "a..b",
            "-a.com",
            "a.*.com",
            "1.2.3",
            "0x7f.1",
            "a b",
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
        assert_eq!("[::1]".parse::<HostPattern>().unwrap().to_string(), "::1");
    }
}
