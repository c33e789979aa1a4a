//! Base64 with padding (RFC 4648 §4).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            // A group of n bytes has n + 1 digits; the rest is padding.
            let digit = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= group.len() { digit as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn agrees_with_the_standard() {
        let table = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in table {
            assert_eq!(super::encode(bytes.as_bytes()), text);
        }
        assert_eq!(super::encode(&[0xff, 0xfe, 0xfb]), "//77");
    }
}
