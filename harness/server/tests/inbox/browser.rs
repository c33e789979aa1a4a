//! A browser without scripts: it keeps a cookie and sends forms.

use std::net::SocketAddr;

use http_body_util::{BodyExt as _, Full};
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;

use crate::house::House;

/// What came back.
pub(crate) struct Seen {
    pub(crate) status: StatusCode,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) text: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The value of the first field of a name.
    pub(crate) fn field(&self, name: &str) -> String {
        let (_, rest) = self.text.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

/// Somebody's browser.
pub(crate) struct Browser {
    pub(crate) address: SocketAddr,
    pub(crate) cookie: Option<String>,
    /// The origin of its forms.
    pub(crate) origin: Option<String>,
}

impl Browser {
    pub(crate) fn new(house: &House) -> Self {
        Self { address: house.address, cookie: None, origin: Some(format!("http://{}", house.address)) }
    }

    /// Logged in with a code or a token.
    pub(crate) async fn logged_in(house: &House, secret: &str) -> Self {
        let mut browser = Self::new(house);
        let seen = browser.post("/login", &[("secret", secret)]).await;
        assert_eq!(seen.status, StatusCode::SEE_OTHER, "{}", seen.text);
        let cookie = seen.header("set-cookie");
        browser.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        browser
    }

    pub(crate) async fn get(&self, path: &str) -> Seen {
        self.send("GET", path, None, &[]).await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Seen {
        let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        self.send("POST", path, Some(body.join("&")), &[]).await
    }

    /// The same from another page, with its own headers.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<String>, more: &[(&str, &str)]) -> Seen {
        let stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        if !more.iter().any(|(name, _)| *name == "host") {
            request = request.header(header::HOST, self.address.to_string());
        }
        if let Some(cookie) = &self.cookie {
            request = request.header(header::COOKIE, cookie);
        }
        if let (Some(origin), true) = (&self.origin, body.is_some()) {
            request = request.header(header::ORIGIN, origin);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        let body = Full::new(bytes::Bytes::from(body.unwrap_or_default()));
        let response = sender.send_request(request.body(body).unwrap()).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Seen { status, headers, text: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// Looks at the inbox and sends the form of an approval.
    pub(crate) async fn answer(&self, approval: &str, fields: &[(&str, &str)]) -> Seen {
        let page = self.get("/").await;
        let (token, path) = (page.field("form_token"), format!("/inbox/approvals/{approval}"));
        let mut all = vec![("form_token", token.as_str())];
        all.extend_from_slice(fields);
        self.post(&path, &all).await
    }
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}
