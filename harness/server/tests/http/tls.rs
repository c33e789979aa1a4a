//! TLS of the server's own, over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use glovebox_server::{Front, Listeners, TlsFiles};
use reqwest::{Certificate, Client};
use tokio::io::AsyncReadExt as _;

use crate::house::{Ground, House, NAMED};

/// Writes a new certificate and its key; the certificate, for clients.
fn renew(ground: &Ground) -> Certificate {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned(), NAMED.to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    fs_err::write(ground.path("cert.pem"), made.cert.pem()).unwrap();
    fs_err::write(ground.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    Certificate::from_pem(made.cert.pem().as_bytes()).unwrap()
}

fn files(ground: &Ground) -> TlsFiles {
    TlsFiles { certificate: ground.path("cert.pem"), key: ground.path("key.pem") }
}

/// A server with a certificate, and that.
async fn encrypted() -> (House, Certificate) {
    let ground = Ground::new();
    let certificate = renew(&ground);
    *ground.front.lock().unwrap() = Front::Tls(files(&ground));
    (House::open(&ground).await, certificate)
}

fn address(house: &House) -> SocketAddr {
    house.url.strip_prefix("https://").unwrap().parse().unwrap()
}

/// A client that trusts this certificate alone, with no connection yet.
fn client(house: &House, trusted: &Certificate) -> Client {
    Client::builder()
        .tls_certs_only([trusted.clone()])
        .resolve(NAMED, address(house))
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

/// Cookies of TLS stay there, only its own pages are origins, and a host with a
/// name tells browsers to come this way only.
#[tokio::test(flavor = "multi_thread")]
async fn pages_are_served_over_tls() {
    let (house, certificate) = encrypted().await;
    let port = address(&house).port();
    let (own, named) = (house.url.clone(), format!("https://{NAMED}:{port}"));
    let client = client(&house, &certificate);
    let token = house.ground.token("approver");
    let log_in = async |url: &str, origin: &str| {
        let form = format!("secret={token}");
        let request = client.post(format!("{url}/login")).header("origin", origin);
        request.header("content-type", "application/x-www-form-urlencoded").body(form).send().await.unwrap()
    };
    let logged_in = log_in(&named, &named).await;
    let cookie = logged_in.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("; Secure"), "{cookie}");
    assert_eq!(logged_in.headers()["strict-transport-security"], "max-age=31536000");
    // Other servers of this machine are reached under these names too.
    let logged_in = log_in(&own, &own).await;
    assert!(logged_in.headers().contains_key("set-cookie"));
    assert!(!logged_in.headers().contains_key("strict-transport-security"));
    // The same page without TLS is somebody else's.
    let foreign = log_in(&own, &own.replace("https", "http")).await;
    assert_eq!(foreign.status(), 403);
    // Who speaks no TLS is not answered.
    let plain = Client::new().get(format!("http://127.0.0.1:{port}/health")).send().await;
    assert!(plain.is_err());
    house.close().await;
}

/// New connections get the new certificate. Bad files change nothing, and are
/// told.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_taken_and_a_bad_one_is_not() {
    let (house, first) = encrypted().await;
    let health = async |trusted: &Certificate| {
        client(&house, trusted).get(format!("{}/health", house.url)).send().await.map(|answer| answer.status().as_u16())
    };
    assert_eq!(health(&first).await.unwrap(), 200);
    let second = renew(&house.ground);
    assert_eq!(health(&second).await.unwrap(), 200);
    assert!(health(&first).await.is_err(), "the old one is gone");
    for broken in ["nothing of the kind\n{\"level\":\"ERROR\"}", ""] {
        fs_err::write(house.ground.path("key.pem"), broken).unwrap();
        assert_eq!(health(&second).await.unwrap(), 200, "the one before stays");
    }
    // A key of another certificate is as bad as none.
    let other = rcgen::KeyPair::generate().unwrap();
    fs_err::write(house.ground.path("key.pem"), other.serialize_pem()).unwrap();
    assert_eq!(health(&second).await.unwrap(), 200);
    let third = renew(&house.ground);
    assert_eq!(health(&third).await.unwrap(), 200);
    let lines = house.ground.lines();
    assert_eq!(lines.matches("the old one stays").count(), 3, "{lines}");
    assert!(!lines.contains("PRIVATE KEY"), "{lines}");
    house.close().await;
}

/// Whoever connects and says nothing keeps nobody waiting, neither others nor
/// the end of the server.
#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_shake_hands_holds_nothing_up() {
    let (house, certificate) = encrypted().await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(tokio::net::TcpStream::connect(address(&house)).await.unwrap());
    }
    let answer = client(&house, &certificate).get(format!("{}/health", house.url)).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    drop(answer);
    house.close().await;
    for mut stream in silent {
        // Closed, however the kernel says so.
        assert!(matches!(stream.read(&mut [0; 16]).await, Ok(0) | Err(_)));
    }
}

/// What others reach is never without TLS by accident.
#[tokio::test]
async fn an_open_address_needs_tls_or_a_proxy() {
    let ground = Ground::new();
    let open = async |address: &str, front| Listeners::open(Some(address.parse().unwrap()), None, false, front).await;
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0"] {
        let problem = open(address, Front::Plain).await.map(drop).unwrap_err();
        assert_eq!(problem.code, env_contracts::Code::ConfigInvalid);
        assert!(problem.help.contains("--behind-proxy"), "{problem}");
    }
    renew(&ground);
    open("0.0.0.0:0", Front::Tls(files(&ground))).await.map(drop).unwrap();
    let proxied = open("0.0.0.0:0", Front::Proxy).await.unwrap();
    // People are led to where their way is encrypted.
    assert_eq!(proxied.url(&[NAMED.to_owned()]).as_deref(), Some("https://glovebox.test"));
    let port = proxied.address().unwrap().port();
    assert_eq!(proxied.url(&[]), Some(format!("http://127.0.0.1:{port}")));
    open("[::ffff:127.0.0.1]:0", Front::Plain).await.map(drop).unwrap();
    // Bad files are told before anything is served.
    fs_err::write(ground.path("cert.pem"), "").unwrap();
    let problem = open("127.0.0.1:0", Front::Tls(files(&ground))).await.map(drop).unwrap_err();
    assert!(problem.message.contains("cert.pem"), "{problem}");
}

/// Behind a proxy that speaks TLS, pages are those of the proxy.
#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_cookies_are_for_tls_alone() {
    let ground = Ground::new();
    *ground.front.lock().unwrap() = Front::Proxy;
    let house = House::open(&Arc::clone(&ground)).await;
    let log_in = async |origin: &str| {
        let request = house.request("POST", "", "/login").header("host", NAMED).header("origin", origin);
        let form = format!("secret={}", ground.token("approver"));
        request.header("content-type", "application/x-www-form-urlencoded").body(form).send().await.unwrap()
    };
    let logged_in = log_in("https://glovebox.test").await;
    assert!(logged_in.headers()["set-cookie"].to_str().unwrap().contains("; Secure"));
    assert!(!logged_in.headers().contains_key("strict-transport-security"), "that is the proxy's to say");
    assert_eq!(log_in("http://glovebox.test").await.status(), 403);
    house.close().await;
}
