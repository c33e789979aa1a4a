//! How MCP servers elsewhere are reached: as webhooks are, but at whatever
//! address the operator named.
//!
//! An operator names a server by themselves, so an address of this host or of
//! its network may be meant: written down as a number, or as `localhost`, it
//! can mean nothing else and is called. A name is answered for by somebody
//! else, and leads to such an address only where the operator said that it may.
//! What hands out a cloud's credentials is never called.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Code, Problem};
use glovebox_identity::read_secret;
use glovebox_mcp::upstream::Outside;
use reqwest::Client;
use url::{Host, Url};
use zeroize::Zeroizing;

use crate::push::target::{self, Checked, Lookup};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// The host's own ways.
pub struct Ways {
    lookup: Lookup,
}

impl Ways {
    /// With the host's own way to look names up.
    pub fn of_this_host() -> Self {
        Self { lookup: target::system() }
    }
}

impl Outside for Ways {
    fn client(&self, url: &str, private: bool) -> Result<Client, Problem> {
        let named = |problem: Problem| Problem::new(Code::UpstreamAddress, problem.message);
        let (_, reach) = target::parse(url, private || literal(url)).map_err(named)?;
        let client = Client::builder()
            .dns_resolver(Arc::new(Checked { reach, lookup: self.lookup.clone() }))
            // Where it leads on to was never checked, and what is sent along
            // is for one server.
            .redirect(reqwest::redirect::Policy::none())
            // A proxy would look names up itself.
            .no_proxy()
            .connect_timeout(CONNECT)
            .referer(false)
            .user_agent(concat!("glovebox/", env!("CARGO_PKG_VERSION")))
            .build();
        client.map_err(|error| Problem::new(Code::BackendError, format!("cannot call out: {error}")))
    }

    fn secret(&self, path: &Path) -> Result<Zeroizing<String>, Problem> {
        read_secret(path, Code::UpstreamHeader).map_err(|error| Problem::of(&error))
    }
}

/// Whether an address can mean nothing else than what it says.
fn literal(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn to(address: &'static str) -> Ways {
        Ways { lookup: Arc::new(move |_| Box::pin(async move { Ok(vec![address.parse::<IpAddr>().unwrap()]) })) }
    }

    #[test]
    fn what_is_written_down_as_a_number_is_meant() {
        let ways = Ways::of_this_host();
        for url in ["http://127.0.0.1:1/mcp", "http://localhost:1/mcp", "https://10.0.0.7/mcp", "https://[::1]/mcp"] {
            assert!(ways.client(url, false).is_ok(), "{url}");
        }
        for url in [
            "http://mcp.example.com/mcp",
            "http://10.0.0.7/mcp",
            "https://169.254.169.254/mcp",
            "https://user:word@mcp.example.com/mcp",
            "file:///etc/passwd",
            "mcp",
        ] {
            assert_eq!(ways.client(url, false).unwrap_err().code, Code::UpstreamAddress, "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_leads_into_a_private_network_only_where_that_was_said() {
        for (address, private, refused) in [
            ("127.0.0.1", false, true),
            ("10.0.0.7", false, true),
            ("169.254.169.254", true, true),
            ("127.0.0.1", true, false),
        ] {
            let client = to(address).client("https://mcp.example.com:1/mcp", private).unwrap();
            let error = client.get("https://mcp.example.com:1/mcp").send().await.unwrap_err();
            let mut cause: &(dyn std::error::Error + 'static) = &error;
            let mut found = false;
            while let Some(inner) = cause.source() {
                cause = inner;
                found |= cause.is::<target::Refused>();
            }
            assert_eq!(found, refused, "{address}: {error:?}");
        }
    }
}
