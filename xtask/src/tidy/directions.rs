//! Who may depend on whom.

use super::Faults;
use super::crates::Package;

/// One direction that must not be taken.
struct Rule {
    /// Which of our crates, by folder. A pattern may end in `*`.
    from: &'static str,
    /// Crates of `from` that are left out.
    except: &'static [&'static str],
    /// What they must not name: `/folder` for a crate of ours, a name for others.
    deny: &'static [&'static str],
    /// What stays allowed although `deny` matches.
    allow: &'static [&'static str],
    /// Whether tests and benches are bound too.
    tests_too: bool,
    /// Why, as the end of a message.
    why: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        from: "/env-contracts",
        except: &[],
        deny: &["/*"],
        allow: &[],
        tests_too: true,
        why: "the wire vocabulary stands on nothing of ours",
    },
    Rule {
        from: "/env-contracts",
        except: &[],
        deny: &[
            "tokio",
            "tokio-*",
            "async-*",
            "rustix",
            "nix",
            "libc",
            "fs-err",
            "cap-std",
            "tempfile",
            "object_store",
            "hyper",
            "reqwest",
            "rusqlite",
            "wasmtime",
            "wasmtime-*",
            "bollard",
        ],
        allow: &[],
        tests_too: false,
        why: "the wire vocabulary does no IO",
    },
    Rule {
        from: "/runtime/*",
        except: &[],
        deny: &["/harness/*", "axum", "rusqlite", "sqlx", "cedar-policy*", "rmcp", "clap"],
        allow: &[],
        tests_too: true,
        why: "the runtime knows nothing of doors, approvals or SQL",
    },
    Rule {
        from: "/*",
        except: &["/runtime/wasm"],
        deny: &["wasmtime", "wasmtime-*"],
        allow: &[],
        tests_too: false,
        why: "the engine lives in runtime/wasm alone; go through `Backend`",
    },
    Rule {
        from: "/*",
        except: &["/runtime/container"],
        deny: &["bollard", "bollard-*"],
        allow: &[],
        tests_too: false,
        why: "the container engine lives in runtime/container alone; go through `Backend`",
    },
    Rule {
        from: "/harness/plane",
        except: &[],
        deny: &["wasmtime", "wasmtime-*", "bollard", "bollard-*", "/runtime/wasm", "/runtime/container"],
        allow: &[],
        tests_too: true,
        why: "the plane knows backends only as `Backend`",
    },
    Rule {
        from: "/*",
        except: &["/harness/mcp", "/harness/server", "/harness/cli", "/tests/conformance"],
        deny: &["rmcp", "rmcp-*"],
        allow: &[],
        tests_too: true,
        why: "the protocol lives in the MCP door; nothing below it knows its types",
    },
    Rule {
        from: "/harness/mcp",
        except: &[],
        deny: &["/*", "axum", "axum-*", "hyper", "hyper-*", "rusqlite", "wasmtime", "wasmtime-*"],
        allow: &["/env-contracts", "/runtime/core", "/runtime/artifacts", "/harness/events", "/harness/plane"],
        tests_too: false,
        why: "the MCP door translates: it reaches the action service and nothing behind it, and knows no server",
    },
    Rule {
        from: "/harness/identity",
        except: &[],
        deny: &["/*", "tokio", "rusqlite"],
        allow: &["/env-contracts"],
        tests_too: true,
        why: "who decided is checked by what knows no database and no door",
    },
    Rule {
        from: "/*",
        except: &["/harness/policy"],
        deny: &["cedar-policy", "cedar-policy-*"],
        allow: &[],
        tests_too: true,
        why: "Cedar lives in harness/policy alone; go through `Policy`",
    },
    Rule {
        from: "/harness/policy",
        except: &[],
        deny: &["/*", "tokio", "tokio-*", "async-*", "rusqlite", "sqlx"],
        allow: &["/env-contracts"],
        tests_too: true,
        why: "policy decides about facts that it is given: nothing of ours but the wire vocabulary, no database, nothing to wait for",
    },
    Rule {
        from: "/runtime/capture",
        except: &[],
        deny: &["/*"],
        allow: &["/env-contracts"],
        tests_too: true,
        why: "capture is a leaf: every backend builds on it",
    },
    Rule {
        from: "/runtime/artifacts",
        except: &[],
        deny: &["/*"],
        allow: &["/env-contracts"],
        tests_too: true,
        why: "artifacts is a leaf: every backend builds on it",
    },
    Rule {
        from: "/runtime/jail",
        except: &[],
        deny: &["/*", "tokio", "serde", "wasmtime*"],
        allow: &["/env-contracts"],
        tests_too: true,
        why: "jail is a leaf: it shuts a process in and knows nothing of what runs there",
    },
    Rule {
        from: "/runtime/supervisor",
        except: &[],
        deny: &["/*", "tokio", "tokio-*", "bollard", "serde_json"],
        allow: &[],
        tests_too: true,
        why: "PID 1 of a container is small, has no async runtime and knows nothing of contracts",
    },
    Rule {
        from: "/*",
        except: &["/harness/store"],
        deny: &["rusqlite", "libsqlite3-sys", "sqlx"],
        allow: &[],
        // Tests forge rows, and benches write the floor.
        tests_too: false,
        why: "SQL lives in harness/store alone; go through `Store`",
    },
    Rule {
        from: "/harness/store",
        except: &[],
        deny: &["/*"],
        allow: &["/env-contracts", "/harness/events"],
        tests_too: true,
        why: "the store keeps what it is given: it knows no policy, no identity and no plane",
    },
    Rule {
        from: "/harness/events",
        except: &[],
        deny: &["/*", "tokio", "rusqlite", "rustix", "fs-err"],
        allow: &["/env-contracts"],
        tests_too: true,
        why: "the vocabulary of the log is plain data",
    },
    Rule {
        from: "/*",
        except: &["/runtime/jail"],
        deny: &["landlock", "seccompiler"],
        allow: &[],
        tests_too: false,
        why: "processes shut themselves in through runtime/jail alone",
    },
    Rule {
        from: "/*",
        except: &[],
        deny: &["/harness/cli", "/xtask"],
        allow: &[],
        tests_too: true,
        why: "programs are the end of the line; what they share belongs in a library crate",
    },
    Rule {
        from: "/*",
        except: &["/harness/cli", "/xtask"],
        deny: &["anyhow"],
        allow: &[],
        tests_too: false,
        why: "a library's errors are a typed enum with codes",
    },
];

/// Every dependency that breaks a rule.
pub(super) fn faults(packages: &[Package]) -> Faults {
    let mut faults = Vec::new();
    for package in packages {
        let from = format!("/{}", package.folder);
        for rule in RULES.iter().filter(|rule| rule.binds(&from)) {
            for dependency in &package.dependencies {
                if rule.forbids(&dependency.label) && (rule.tests_too || !dependency.dev) {
                    faults.push(format!(
                        "{}/Cargo.toml: must not depend on `{}`: {}",
                        package.folder,
                        dependency.label.trim_start_matches('/'),
                        rule.why
                    ));
                }
            }
        }
    }
    faults
}

impl Rule {
    fn binds(&self, folder: &str) -> bool {
        matches(self.from, folder) && !self.except.contains(&folder)
    }

    fn forbids(&self, label: &str) -> bool {
        let any = |patterns: &[&str]| patterns.iter().any(|pattern| matches(pattern, label));
        any(self.deny) && !any(self.allow)
    }
}

/// Equality, or a common beginning where the pattern ends in `*`.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => text == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::super::crates::Dependency;
    use super::*;

    /// Number of faults for one crate with one dependency.
    fn check(folder: &str, label: &str, dev: bool) -> usize {
        faults(&[Package {
            folder: folder.to_owned(),
            dependencies: vec![Dependency { label: label.to_owned(), dev }],
            roots: Vec::new(),
        }])
        .len()
    }

    #[test]
    fn forbidden_directions_are_found() {
        for (folder, label, dev) in [
            ("env-contracts", "/runtime/core", false),
            ("env-contracts", "/runtime/core", true),
            ("env-contracts", "tokio", false),
            ("env-contracts", "fs-err", false),
            ("runtime/core", "/harness/plane", false),
            ("runtime/core", "/harness/plane", true),
            ("runtime/core", "wasmtime", false),
            ("harness/plane", "rusqlite", false),
            ("harness/store", "/harness/policy", false),
            ("harness/events", "tokio", false),
            ("harness/cli", "wasmtime-wasi", false),
            ("harness/server", "bollard", false),
            ("harness/plane", "/runtime/wasm", true),
            ("runtime/capture", "/runtime/core", false),
            ("runtime/artifacts", "/runtime/capture", false),
            ("runtime/jail", "/runtime/core", false),
            ("harness/identity", "/harness/store", false),
            ("runtime/supervisor", "tokio", false),
            ("runtime/supervisor", "/env-contracts", false),
            ("runtime/wasm", "seccompiler", false),
            ("harness/plane", "cedar-policy", false),
            ("harness/policy", "/runtime/core", true),
            ("runtime/core", "anyhow", false),
        ] {
            assert_eq!(check(folder, label, dev), 1, "{folder} → {label}");
        }
        assert_eq!(check("harness/plane", "wasmtime", false), 2, "two rules forbid it");
        assert_eq!(check("runtime/egress", "rusqlite", false), 2, "and here");
        assert_eq!(check("harness/policy", "rusqlite", false), 2, "and here");
        assert_eq!(check("harness/mcp", "/harness/cli", false), 2, "and here: a door, and nobody's");
        assert_eq!(check("harness/plane", "rusqlite", true), 0, "tests forge rows");
    }

    #[test]
    fn wanted_directions_pass() {
        for (folder, label, dev) in [
            ("env-contracts", "serde", false),
            ("env-contracts", "fs-err", true),
            ("runtime/core", "/env-contracts", false),
            ("runtime/wasm", "wasmtime-wasi", false),
            ("runtime/jail", "landlock", false),
            ("runtime/wasm", "/runtime/jail", false),
            ("runtime/wasm", "/runtime/capture", false),
            ("runtime/artifacts", "/env-contracts", false),
            ("runtime/container", "bollard", false),
            ("runtime/container", "/runtime/supervisor", false),
            ("harness/plane", "/runtime/core", false),
            ("harness/plane", "/harness/policy", false),
            ("harness/policy", "cedar-policy", false),
            ("harness/policy", "/env-contracts", false),
            ("harness/store", "rusqlite", false),
            ("harness/store", "/harness/events", false),
            ("harness/cli", "/runtime/wasm", false),
            ("harness/cli", "anyhow", false),
        ] {
            assert_eq!(check(folder, label, dev), 0, "{folder} → {label}");
        }
    }
}
