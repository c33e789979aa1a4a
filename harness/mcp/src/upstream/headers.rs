//! What is sent along to a server elsewhere.

use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr as _;

use env_contracts::{Code, Problem};
use http::{HeaderName, HeaderValue};

use super::{Outside, Server};

/// Headers that say where a message belongs, and so are not an operator's to
/// choose.
const RESERVED: [&str; 6] = ["host", "content-length", "content-type", "accept", "connection", "transfer-encoding"];

/// What is sent along with every request.
pub(super) fn headers(server: &Server, outside: &dyn Outside) -> Result<HashMap<HeaderName, HeaderValue>, Problem> {
    let mut headers = HashMap::new();
    // Never with what was read: it is a secret.
    let wrong = |path: &Path, why: &str| Problem::new(Code::UpstreamHeader, format!("`{}`: {why}", path.display()));
    let value = |path: &Path, text: &str| {
        let mut value = HeaderValue::from_str(text).map_err(|_| wrong(path, "a value holds what no header can"))?;
        value.set_sensitive(true);
        Ok::<_, Problem>(value)
    };
    if let Some(path) = &server.bearer_file {
        let text = outside.secret(path)?;
        let token = text.trim();
        if token.is_empty() || token.contains(char::is_whitespace) {
            return Err(wrong(path, "a token is one word"));
        }
        headers.insert(http::header::AUTHORIZATION, value(path, &format!("Bearer {token}"))?);
    }
    if let Some(path) = &server.header_file {
        let text = outside.secret(path)?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (name, content) = line.split_once(':').ok_or_else(|| wrong(path, "a line is not `NAME: VALUE`"))?;
            let name = HeaderName::from_str(name.trim()).map_err(|_| wrong(path, "a name is none of a header"))?;
            let ours = RESERVED.contains(&name.as_str()) || name.as_str().starts_with("mcp-");
            if ours || headers.insert(name, value(path, content.trim())?).is_some() {
                return Err(wrong(path, "a header stands there twice, or is one that the protocol sets"));
            }
        }
    }
    Ok(headers)
}
