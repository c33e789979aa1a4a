//! Writes every JSON Schema into a folder: `cargo run -p env-contracts --example schemas -- DIR`.

#[expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a generator for developers: a failure should stop it loudly"
)]
fn main() {
    let dir = std::path::PathBuf::from(std::env::args_os().nth(1).unwrap());
    std::fs::create_dir_all(&dir).unwrap();
    for (name, schema) in env_contracts::schemas::all() {
        std::fs::write(dir.join(name), format!("{schema:#}\n")).unwrap();
    }
}
