//! Where a webhook may lead. Whoever writes its address, or answers for its
//! name, must not reach what only this host can: its loopback, its network,
//! the metadata of its cloud.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use env_contracts::{Code, Problem};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// The kind of network that an address is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Public,
    Loopback,
    Private,
    /// Shared by a carrier's customers.
    Shared,
    LinkLocal,
    /// Where clouds hand out the credentials of this machine.
    Metadata,
    Multicast,
    Reserved,
}

/// How names become addresses.
pub(crate) type Lookup =
    Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> + Send + Sync>;

/// Metadata services that are not in the link-local range.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)),
];

/// What may be called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// Also addresses of our own.
    pub(crate) private: bool,
    /// Without TLS: then the loopback alone.
    pub(crate) plain: bool,
}

impl Reach {
    /// Refuses an address that may not be called.
    fn check(self, address: IpAddr) -> Result<(), Refused> {
        let class = class(address);
        let own = matches!(class, Class::Loopback | Class::Private | Class::Shared);
        let reached = class == Class::Public || (self.private && own);
        if reached && (!self.plain || class == Class::Loopback) {
            return Ok(());
        }
        Err(Refused { address, class })
    }
}

/// An address that may not be called.
#[derive(Debug)]
pub(crate) struct Refused {
    address: IpAddr,
    class: Class,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.class {
            Class::Public => "is not of this host, and only that is called without TLS",
            Class::Loopback => "is this host itself",
            Class::Private => "is in a private network",
            Class::Shared => "is in a carrier's network",
            Class::LinkLocal => "is link-local",
            Class::Metadata => "is a cloud's metadata service",
            Class::Multicast => "is for many",
            Class::Reserved => "is reserved",
        };
        write!(f, "{} {what}", self.address)
    }
}

impl std::error::Error for Refused {}

/// The address of a webhook, where it can be one.
///
/// # Errors
/// `webhook-target`.
pub(crate) fn parse(text: &str, private: bool) -> Result<(Url, Reach), Problem> {
    let wrong = |why: String| Problem::new(Code::WebhookTarget, format!("`{text}` {why}"));
    let url = Url::parse(text).map_err(|error| wrong(format!("is no address: {error}")))?;
    let plain = url.scheme() == "http";
    if !(url.scheme() == "https" || (plain && private)) {
        return Err(wrong("is not https".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("holds a user or a password".into()));
    }
    let reach = Reach { private, plain };
    // Nobody looks up what is an address already.
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) => None,
        None => return Err(wrong("names no host".into())),
    };
    if let Some(address) = address {
        reach.check(address).map_err(|refused| wrong(format!("leads nowhere that may be called: {refused}")))?;
    }
    Ok((url, reach))
}

/// Looks a name up and checks every address that it has; only those that were
/// checked are connected to, so a name that answers otherwise a moment later
/// gains nothing.
pub(crate) struct Checked {
    pub(crate) reach: Reach,
    pub(crate) lookup: Lookup,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, found) = (self.reach, (self.lookup)(name.as_str().to_owned()));
        Box::pin(async move {
            let addresses = found.await?;
            for address in &addresses {
                reach.check(*address)?;
            }
            let with_port = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(with_port) as Addrs)
        })
    }
}

/// The host's own way to look names up.
pub(crate) fn system() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect()) })
    })
}

/// In which kind of network an address is.
pub(crate) fn class(address: IpAddr) -> Class {
    if METADATA.contains(&address) {
        return Class::Metadata;
    }
    match address {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => of_v6(address),
    }
}

fn of_v4(address: Ipv4Addr) -> Class {
    match address.octets() {
        [127, ..] => Class::Loopback,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] => Class::Private,
        [100, 64..=127, ..] => Class::Shared,
        [169, 254, 169, 254] => Class::Metadata,
        [169, 254, ..] => Class::LinkLocal,
        [224..=239, ..] => Class::Multicast,
        // This network, protocols, examples, relays, benchmarks, the future.
        [0, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => Class::Reserved,
        _ => Class::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Class {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let inner = || {
        let [high, low] = [g.to_be_bytes(), h.to_be_bytes()];
        class(IpAddr::V4(Ipv4Addr::new(high[0], high[1], low[0], low[1])))
    };
    match [a, b, c, d, e, f] {
        _ if address == Ipv6Addr::LOCALHOST => Class::Loopback,
        _ if address == Ipv6Addr::UNSPECIFIED => Class::Reserved,
        // An IPv4 address in the clothes of another: mapped, compatible, or
        // translated on its way.
        [0, 0, 0, 0, 0, 0xffff | 0] | [0x0064, 0xff9b, 0, 0, 0, 0] => inner(),
        [0xff00..=0xffff, ..] => Class::Multicast,
        [0xfe80..=0xfebf, ..] => Class::LinkLocal,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Class::Private,
        // Tunnels and tests; examples; tunnels.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..] => Class::Reserved,
        [0x2000..=0x3fff, ..] => Class::Public,
        _ => Class::Reserved,
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
