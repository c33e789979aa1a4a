//! Who may reach the door at all: hosts, origins, sockets, sizes.

use serde_json::json;

use crate::house::{House, answer};

/// A page of a stranger, and a name of theirs that leads to us, reach nothing:
/// neither with a credential nor without.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_pages_and_names_are_refused() {
    let house = House::new().await;
    let port = house.url.rsplit(':').next().unwrap().to_owned();
    let own = house.url.clone();
    let send = async |headers: &[(&str, &str)]| {
        let mut request = house.request("GET", "operator", "/v1/whoami");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (status, problem) = answer(request).await;
        (status, problem["code"].clone())
    };
    assert_eq!(send(&[]).await.0, 200);
    assert_eq!(send(&[("origin", &own)]).await.0, 200);
    assert_eq!(send(&[("host", &format!("localhost:{port}"))]).await.0, 200);
    for headers in [
        [("origin", "http://evil.example")],
        [("origin", "null")],
        [("origin", &format!("http://127.0.0.1:{}", port.parse::<u16>().unwrap().wrapping_add(1)))],
        [("origin", &format!("{own}.evil.example"))],
        [("host", &format!("evil.example:{port}"))],
        [("host", "127.0.0.1")],
        [("host", &format!("127.0.0.1.evil.example:{port}"))],
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site")],
    ] {
        assert_eq!(send(&headers).await, (403, json!("origin-refused")), "{headers:?}");
    }
}

/// Whoever comes through the socket is who the kernel says: here, the user of
/// the server.
#[tokio::test(flavor = "multi_thread")]
async fn the_socket_knows_its_peer() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::new().await;
    let who = glovebox_server::ask(&house.socket, "GET", "/v1/whoami", None).await.unwrap();
    assert_eq!((&who["role"], &who["principal"]["user"]), (&json!("operator"), &json!("owner")));
    let mode = fs_err::metadata(&house.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only its owner may connect");
    // Without a credential, a port of the same machine is nobody.
    let (status, _) = house.get("", "/v1/whoami").await;
    assert_eq!(status, 401);
}

/// What is too large, no JSON, or nothing that is known is refused with a code.
#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_answered_with_codes() {
    let house = House::new().await;
    let send = async |request: reqwest::RequestBuilder| {
        let (status, problem) = answer(request).await;
        (status, problem["code"].as_str().unwrap_or_default().to_owned())
    };
    let post = || house.request("POST", "agent", "/v1/actions");
    let json = |text: &str| post().header("content-type", "application/json").body(text.to_owned());
    assert_eq!(
        send(json(&format!("{{\"capability\":\"{}\"}}", "x".repeat(5 << 20)))).await,
        (413, "body-too-large".into())
    );
    assert_eq!(send(json("{")).await, (400, "usage".into()));
    assert_eq!(send(json("[]")).await, (400, "usage".into()));
    assert_eq!(send(json("{\"capability\":\"no.such\"}")).await, (404, "tool-unknown".into()));
    assert_eq!(send(post().body("a=b")).await, (415, "media-type-unsupported".into()));
    let form = post().header("content-type", "application/x-www-form-urlencoded").body("a=b");
    assert_eq!(send(form).await, (415, "media-type-unsupported".into()));
    assert_eq!(send(house.request("GET", "agent", "/v1/nothing")).await, (404, "route-unknown".into()));
    assert_eq!(send(house.request("DELETE", "agent", "/v1/actions")).await, (405, "method-unknown".into()));
    assert_eq!(send(house.request("GET", "agent", "/v1/actions?no=1")).await, (400, "usage".into()));
    assert_eq!(send(house.request("GET", "agent", "/v1/actions/a%00b")).await, (400, "usage".into()));
    let wrong = house.request("GET", "", "/v1/whoami").bearer_auth("gbx_wrong");
    assert_eq!(send(wrong).await, (401, "token-unknown".into()));
    // The arguments are parsed once and strictly, from the bytes that came.
    let twice = "{\"capability\":\"fake.read\",\"session\":\"s1\",\"arguments\":{\"a\":1,\"a\":2}}";
    let (status, view) = answer(json(twice)).await;
    assert_eq!(
        (status, &view["observation"]["outcome"]["code"]),
        (200, &serde_json::json!("arguments-invalid")),
        "{view}"
    );
    assert!(house.ground.ran().is_empty());
}

/// Whoever guesses is slowed down; whoever has a right credential is not.
#[tokio::test(flavor = "multi_thread")]
async fn guesses_are_counted() {
    let house = House::new().await;
    let mut last = 0;
    for _ in 0..40 {
        let guess = house.request("GET", "", "/v1/whoami").bearer_auth("gbx_wrong");
        last = answer(guess).await.0;
        if last == 429 {
            break;
        }
    }
    assert_eq!(last, 429);
    assert_eq!(house.get("agent", "/v1/whoami").await.0, 200);
}

/// A request whose body begins as here and is `length` bytes long, as it says;
/// and what is answered to it.
async fn begun(house: &House, length: usize, body: &str) -> tokio::task::JoinHandle<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let address = house.url.strip_prefix("http://").unwrap();
    let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
    client.write_all(format!("{}{body}", head(house, length)).as_bytes()).await.unwrap();
    tokio::spawn(async move {
        let mut answer = vec![0; 4096];
        let read = tokio::time::timeout(std::time::Duration::from_secs(60), client.read(&mut answer)).await;
        answer.truncate(read.expect("nothing is answered").unwrap());
        String::from_utf8(answer).unwrap()
    })
}

/// What is too large is refused by what it says of itself, and who does not go
/// on is not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_has_an_end_in_length_and_in_time() {
    let house = House::new().await;
    let (large, stalled) = (begun(&house, 5 << 20, "").await, begun(&house, 100, "{").await);
    let large = large.await.unwrap();
    assert!(large.starts_with("HTTP/1.1 413") && large.contains("body-too-large"), "{large}");
    let stalled = stalled.await.unwrap();
    assert!(stalled.starts_with("HTTP/1.1 408") && stalled.contains("body-too-slow"), "{stalled}");
    house.close().await;
}

fn head(house: &House, length: usize) -> String {
    let (address, token) = (house.url.strip_prefix("http://").unwrap(), house.ground.token("agent"));
    format!(
        "POST /v1/actions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// Whoever is not known yet says what a login needs, and no more.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_says_little() {
    let house = House::new().await;
    let log_in = async |secret: String| {
        let form = house.request("POST", "", "/login").header("origin", &house.url);
        let form = form.header("content-type", "application/x-www-form-urlencoded");
        form.body(format!("secret={secret}")).send().await.unwrap().status().as_u16()
    };
    assert_ne!(log_in("x".repeat(1 << 10)).await, 413);
    assert_eq!(log_in("x".repeat(65 << 10)).await, 413);
    house.close().await;
}

/// Who sends all of it before it looks for an answer finds one: closing on it
/// would take that away.
#[tokio::test(flavor = "multi_thread")]
async fn who_goes_on_sending_what_is_refused_still_hears_why() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let house = House::new().await;
    let address = house.url.strip_prefix("http://").unwrap();
    for _ in 0..20 {
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        client.write_all(head(&house, 5 << 20).as_bytes()).await.unwrap();
        client.write_all(&vec![b'x'; 5 << 20]).await.unwrap();
        let mut answer = vec![0; 4096];
        let count = client.read(&mut answer).await.unwrap();
        assert!(answer[..count].starts_with(b"HTTP/1.1 413"), "{count}");
    }
    house.close().await;
}

/// A server that stops waits for no body that does not come.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_holds_no_server_up() {
    let house = House::new().await;
    let stalled = begun(&house, 100, "{").await;
    // It was taken: whoever comes after it is answered.
    assert_eq!(house.get("agent", "/v1/whoami").await.0, 200);
    house.close().await;
    assert!(stalled.await.unwrap().starts_with("HTTP/1.1 408"));
}

/// Who connects and says nothing, or not all of a head, is not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_is_not_waited_for() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let house = House::new().await;
    let address = house.url.strip_prefix("http://").unwrap();
    for said in ["", "GET /health HTTP/1.1\r\nhost:"] {
        let mut silent = tokio::net::TcpStream::connect(address).await.unwrap();
        silent.write_all(said.as_bytes()).await.unwrap();
        let mut more = [0; 1];
        let ended = silent.read(&mut more);
        let ended = tokio::time::timeout(std::time::Duration::from_secs(60), ended).await;
        assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{said:?}: {ended:?}");
    }
    house.close().await;
}
