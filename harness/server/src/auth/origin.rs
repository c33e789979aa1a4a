//! Which pages and names may reach this door: a browser of the same machine
//! carries out what foreign pages tell it to.

use axum::http::{HeaderMap, Method, Uri, header};
use env_contracts::{Code, Problem};

/// Where a listener is reached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reached {
    /// Values of `host` that are meant for us. Empty: any, because no browser
    /// reaches it.
    pub(crate) hosts: Vec<String>,
    /// Whether it speaks TLS, or a proxy before it does.
    pub(crate) secure: bool,
}

impl Reached {
    /// A TCP listener on this port: by loopback names, and those that the
    /// operator gave it.
    pub(crate) fn tcp(port: u16, names: &[String], secure: bool) -> Self {
        let loopback = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
        let all = loopback.iter().chain(names);
        let default = if secure { 443 } else { 80 };
        let mut hosts: Vec<String> = all.clone().map(|name| format!("{name}:{port}")).collect();
        if port == default {
            hosts.extend(all.cloned());
        } else {
            // Behind a proxy the port is the proxy's.
            hosts.extend(names.iter().cloned());
        }
        Self { hosts, secure }
    }

    /// Refuses a request that was meant for another name: the name of a
    /// stranger's page that was made to lead to us.
    pub(crate) fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
        if self.hosts.is_empty() {
            return Ok(());
        }
        let mut given = headers.get_all(header::HOST).iter();
        let host = given.next().and_then(|host| host.to_str().ok());
        // HTTP/2 has it in the address.
        let host = host.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str));
        let known = |host: &str| self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
        match host {
            Some(host) if known(host) && given.next().is_none() => Ok(()),
            _ => Err(Problem::new(Code::OriginRefused, "the request names another host")),
        }
    }

    /// Refuses what a foreign page sends. Requests that change something and
    /// come with a cookie have to say that they come from us.
    pub(crate) fn check_origin(&self, method: &Method, headers: &HeaderMap, cookie: bool) -> Result<(), Problem> {
        let foreign = || Problem::new(Code::OriginRefused, "the request comes from another page");
        let mut origins = headers.get_all(header::ORIGIN).iter();
        match origins.next() {
            Some(origin) => {
                let ours = origin.to_str().is_ok_and(|origin| self.is_ours(origin));
                if !ours || origins.next().is_some() {
                    return Err(foreign());
                }
            }
            None if cookie && !method.is_safe() => return Err(foreign()),
            None => {}
        }
        // A foreign page that only links here is a person who follows a link.
        let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
        let follows = method.is_safe() && headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
        match site {
            Some("cross-site" | "same-site") if !follows => Err(foreign()),
            _ => Ok(()),
        }
    }

    fn is_ours(&self, origin: &str) -> bool {
        // Behind a proxy that speaks TLS, pages are `https` and we are not.
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://").filter(|_| !self.secure));
        host.is_some_and(|host| self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host)))
    }
}

#[cfg(test)]
#[path = "origin_tests.rs"]
mod tests;
