//! What actions made, read by who may see them.

use env_contracts::Access;
use glovebox_plane::Asking;
use rmcp::ServiceError;
use rmcp::model::{ContentBlock, ErrorCode, ReadResourceRequestParams, ReadResourceResponse, ResourceContents};
use serde_json::json;

use crate::client::{ASK, Client, Era, Hand, Seat, call, error, named};
use crate::fake::{COMMAND, TOOL, returned};
use crate::house::{Setup, agent};

async fn read(client: &Client, uri: &str) -> Result<ResourceContents, ServiceError> {
    let read = client.peer().read_resource_once(ReadResourceRequestParams::new(uri)).await?;
    let ReadResourceResponse::Complete(read) = read else { panic!("{read:?}") };
    Ok(read.contents[0].clone())
}

fn links(content: &[ContentBlock]) -> Vec<String> {
    let link = |block: &ContentBlock| match block {
        ContentBlock::ResourceLink(link) => Some(link.uri.clone()),
        _ => None,
    };
    content.iter().filter_map(link).collect()
}

/// Writes these files into the outputs of a run.
fn makes(seat: &Seat, files: &'static [(&'static str, &'static [u8])]) {
    seat.house.on_run(move |bound, _| {
        use std::io::Write as _;
        let outputs = bound.files.outputs.as_ref().unwrap();
        for (name, bytes) in files {
            let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
            let file = rustix::fs::openat(outputs, *name, flags, rustix::fs::Mode::RUSR).unwrap();
            std::fs::File::from(file).write_all(bytes).unwrap();
        }
        returned(r#"{"ok":1}"#)
    });
}

#[test]
fn what_an_action_made_is_linked_to_and_read_as_text_or_as_bytes() {
    let seat = Seat::of(&Setup::of(&[TOOL]).rules(ASK));
    makes(&seat, &[("notes.txt", b"some words"), ("raw.bin", b"\xff\xfe\x00")]);
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let result = call(&client, "fake.tool", json!({})).await;
        let links = links(&result.content);
        assert_eq!(links.len(), 2, "{:?}", result.content);
        assert!(links.iter().all(|link| link.starts_with("artifact:")));
        let mut texts = Vec::new();
        for link in &links {
            match read(&client, link).await.unwrap() {
                ResourceContents::TextResourceContents { text, uri, meta, .. } => {
                    assert_eq!((&uri, &meta.unwrap()["glovebox/trust"]), (link, &json!("untrusted")));
                    texts.push(text);
                }
                ResourceContents::BlobResourceContents { blob, .. } => texts.push(blob),
                other => panic!("{other:?}"),
            }
        }
        texts.sort();
        assert_eq!(texts, ["//4A", "some words"]);
    });
}

#[test]
fn what_is_not_there_is_anothers_or_is_no_name_is_answered_alike() {
    let seat = Seat::of(&Setup::of(&[TOOL]).rules(ASK));
    makes(&seat, &[("notes.txt", b"some words")]);
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let result = call(&client, "fake.tool", json!({})).await;
        let (link, action) = (links(&result.content)[0].clone(), named(&result));
        let party = seat.party_of(agent("u", "other"), Access::Write, Asking::Leave);
        let theirs = seat.client_of(party, Era::New, Hand::default()).await;
        let foreign = error(read(&theirs, &link).await);
        assert_eq!(foreign.code, ErrorCode::INVALID_PARAMS);
        let data = format!("artifact:{action}/data");
        assert_eq!(error(read(&theirs, &data).await).code, ErrorCode::INVALID_PARAMS);
        assert!(read(&client, &data).await.is_ok());
        for wrong in [
            format!("artifact:{action}/9"),
            format!("artifact:{action}/../1"),
            format!("artifact:{action}/01"),
            "artifact:nothing/1".to_owned(),
            "artifact:".to_owned(),
            "file:///etc/passwd".to_owned(),
            link.replace("artifact:", "artifact://"),
        ] {
            let missing = error(read(&client, &wrong).await);
            assert_eq!(missing.code, ErrorCode::INVALID_PARAMS, "{wrong}");
            assert_eq!(missing.message.replace(&wrong, &link), foreign.message);
        }
    });
}

#[test]
fn a_long_result_is_linked_to_and_what_is_too_long_is_not_read() {
    let seat = Seat::of(&Setup::of(&[TOOL, COMMAND]).rules(ASK));
    seat.house.on_run(|_, ports| {
        ports.frames.frame(glovebox_runtime::job::Frame::Stdout(format!("\"{}\"", "a".repeat(200_000)).as_bytes()));
        glovebox_runtime::job::End::Exited { code: 0 }
    });
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let result = call(&client, "fake.command", json!({})).await;
        assert_eq!(result.structured_content, None);
        let size = serde_json::to_string(&result).unwrap().len();
        assert!(size < 64 << 10, "{size}");
        let data = links(&result.content).into_iter().find(|link| link.ends_with("/data")).unwrap();
        let ResourceContents::TextResourceContents { text, .. } = read(&client, &data).await.unwrap() else { panic!() };
        assert_eq!(text.len(), 200_002);
    });
    static LARGE: &[(&str, &[u8])] = &[("large.txt", &[b'a'; (4 << 20) + 1])];
    let seat = Seat::of(
        &Setup::of(&[&TOOL.replace("output = \"1MiB\"", "output = \"1MiB\", storage = \"16MiB\"")]).rules(ASK),
    );
    makes(&seat, LARGE);
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let result = call(&client, "fake.tool", json!({})).await;
        let refused = error(read(&client, &links(&result.content)[0]).await);
        assert_eq!(refused.code, ErrorCode::INVALID_PARAMS);
        assert!(refused.data.unwrap()["help"].as_str().unwrap().contains("glovebox artifacts get"));
    });
}
