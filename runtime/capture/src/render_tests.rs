use super::*;
use crate::{Capture, CaptureLimits};

fn check(head: usize, tail: usize, stream: &[u8], body: Body, omitted: u64, cut: usize) {
    let mut capture: Capture = Capture::new(CaptureLimits { head, tail, spill: 0 }, None);
    capture.write(stream);
    let rendered = capture.finish().render();
    assert_eq!(
        rendered,
        Rendered { body, total: stream.len() as u64, omitted, cut },
        "{stream:?} kept as {head}+{tail}"
    );
}

fn text(text: &str) -> Body {
    Body::Text(text.into())
}

fn base64(text: &str) -> Body {
    Body::Base64(text.into())
}

#[test]
fn text_without_omission() {
    check(4, 4, b"", text(""), 0, 0);
    check(4, 4, b"abcdefgh", text("abcdefgh"), 0, 8);
    // Between head and tail runs a character.
    check(4, 4, "abc\u{e9}fgh".as_bytes(), text("abc\u{e9}fgh"), 0, 8);
}

#[test]
fn characters_at_the_cut_are_left_out_whole_and_counted() {
    check(4, 4, b"abcdXefgh", text("abcdefgh"), 1, 4);
    // Two bytes each: the head ends after one of them, the tail starts after one.
    check(4, 4, "abc\u{e9}--\u{e9}efg".as_bytes(), text("abcefg"), 6, 3);
    // Four bytes each: one in the head and three in the tail, and the reverse.
    check(3, 5, "ab\u{1f600}-\u{1f600}yz".as_bytes(), text("abyz"), 9, 2);
    check(5, 3, "ab\u{1f600}-\u{1f600}yz".as_bytes(), text("abyz"), 9, 2);
    // One character is all there is: nothing of it can be shown.
    check(1, 2, "\u{1f600}".as_bytes(), text(""), 4, 0);
}

#[test]
fn head_or_tail_alone() {
    check(0, 3, b"abcdef", text("def"), 3, 0);
    check(3, 0, b"abcdef", text("abc"), 3, 3);
    check(0, 0, b"abcdef", text(""), 6, 0);
}

#[test]
fn anything_else_is_base64_of_the_kept_bytes() {
    check(4, 4, b"\xff\x00\x01", base64("/wAB"), 0, 3);
    // Broken in the middle of the head, or at the end of the stream, where nothing was omitted.
    check(3, 3, b"a\xffbXdef", base64("Yf9iZGVm"), 1, 3);
    check(3, 3, b"abcXde\xc3", base64("YWJjZGXD"), 1, 3);
    // Four continuation bytes are the rest of no character.
    check(1, 4, b"aXX\x80\x80\x80\x80", base64("YYCAgIA="), 2, 1);
    // The head ends within a character, but of what can't become one.
    check(2, 2, b"a\xc0Xcd", base64("YcBjZA=="), 1, 2);
}
