//! Base64 as RFC 4648 §4 defines it: the standard alphabet, with padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = 0;
        for at in 0..3 {
            bits = bits << 8 | usize::from(group.get(at).copied().unwrap_or(0));
        }
        for at in 0..4 {
            // One byte fills two letters, two bytes three, three bytes four.
            if at <= group.len() {
                text.push(char::from(ALPHABET[bits >> (18 - 6 * at) & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    /// The vectors of RFC 4648 §10, and every letter of the alphabet.
    #[test]
    fn rfc_4648_vectors() {
        // Sixteen groups that together spell the alphabet.
        let all: Vec<u8> = (0_u32..64)
            .step_by(4)
            .flat_map(|i| ((i << 18) | ((i + 1) << 12) | ((i + 2) << 6) | (i + 3)).to_be_bytes()[1..].to_vec())
            .collect();
        let table: &[(&[u8], &str)] = &[
            (b"", ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"fooba", "Zm9vYmE="),
            (b"foobar", "Zm9vYmFy"),
            (&all, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
        ];
        for (bytes, text) in table {
            assert_eq!(super::encode(bytes), *text);
        }
    }
}
