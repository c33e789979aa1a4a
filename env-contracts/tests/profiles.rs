//! What an agent's profile lets it find and call.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use env_contracts::{CapabilityRef, Label, Manifest, NamePattern, Principal, Profiles, Rate, Span, VersionRequirement};

const PROFILES: &str = include_str!("../golden/profiles.v1.toml");

fn asked_by(agent: &str) -> Principal {
    let (name, version) = agent.split_once('@').map_or((agent, None), |(name, version)| (name, Some(version)));
    Principal {
        tenant: "local".parse().unwrap(),
        user: "u".parse().unwrap(),
        agent: (!name.is_empty()).then(|| name.parse().unwrap()),
        agent_version: version.map(|version| version.parse().unwrap()),
        chain: Vec::new(),
    }
}

/// For an agent, each capability with `d` where it is disclosed and `x` where
/// it may be called.
fn rights(profiles: &Profiles, agent: &str) -> String {
    let principal = asked_by(agent);
    let one = |name: &str| {
        let capability: CapabilityRef = format!("{name}@1.0.0").parse().unwrap();
        let disclosed = profiles.disclosed(&principal, &capability);
        format!(
            "{name}={}{}",
            if disclosed { "d" } else { "" },
            if profiles.executable(&principal, &capability) { "x" } else { "" }
        )
    };
    ["fs.read", "text.count", "text.diff", "mail.send"].map(one).join(" ")
}

/// The example of the documentation is one, and does what is said of it.
#[test]
fn the_documented_example_is_understood() {
    let page = include_str!("../../docs/profiles.md");
    let (_, example) = page.split_once("```toml\n").unwrap();
    let profiles = Profiles::from_toml(example.split_once("```").unwrap().0).unwrap();
    assert_eq!(rights(&profiles, "researcher@1.2.0"), "fs.read=dx text.count=dx text.diff=dx mail.send=d");
    assert_eq!(rights(&profiles, "researcher"), "fs.read=dx text.count=d text.diff=d mail.send=");
    assert_eq!(rights(&profiles, "stranger"), "fs.read= text.count=dx text.diff=d mail.send=");
    let allowed = profiles.of(&asked_by("researcher@1.2.0"));
    assert_eq!((allowed.rate.unwrap().calls, allowed.max_label), (100, Some(Label::Confidential)));
}

#[test]
fn the_first_entry_that_fits_name_and_version_counts() {
    let profiles = Profiles::from_toml(PROFILES).unwrap();
    let researcher = "fs.read=dx text.count=dx text.diff=dx mail.send=d";
    let older = "fs.read= text.count=dx text.diff=d mail.send=";
    let default = "fs.read= text.count=d text.diff=d mail.send=";
    let everything = "fs.read=dx text.count=dx text.diff=dx mail.send=dx";
    for (agent, expected) in [
        ("researcher@1.2.0", researcher),
        ("researcher@3.0.0", researcher),
        ("researcher@1.1.9", older),
        // A pre-release comes before its release, and is in no series.
        ("researcher@1.2.0-rc.1", default),
        ("researcher@0.9.0", default),
        // Of which the channel knows no version: no entry that asks for one.
        ("researcher", default),
        ("stranger@1.2.0", default),
        ("clerk", everything),
        ("clerk@0.0.1", everything),
        // A person.
        ("", everything),
    ] {
        assert_eq!(rights(&profiles, agent), expected, "{agent}");
    }
    let allowed = profiles.of(&asked_by("researcher@1.2.0"));
    assert_eq!(allowed.rate.map(|rate| (rate.calls, rate.per.0.as_secs())), Some((100, 3600)));
    assert_eq!(allowed.max_label, Some(Label::Internal));

    // Without `[default]` strangers find nothing; without a file, everything.
    let closed =
        Profiles::from_toml(&PROFILES.replace("[default]\ndiscover = [\"text.*\"]\nexecute = []\n", "")).unwrap();
    assert_eq!(rights(&closed, "stranger"), "fs.read= text.count= text.diff= mail.send=");
    assert_eq!(rights(&Profiles::default(), "stranger"), everything);
    // What may be called may be found, whatever is written.
    let blind = "schema = \"glovebox/profiles/v1\"\n[default]\ndiscover = []\nexecute = [\"*\"]\n";
    assert_eq!(rights(&Profiles::from_toml(blind).unwrap(), "a"), rights(&closed, "stranger"));
}

#[test]
fn patterns_fit_whole_words() {
    let fits = |pattern: &str, name: &str| pattern.parse::<NamePattern>().unwrap().fits(&name.parse().unwrap());
    for (pattern, name, expected) in [
        ("*", "fs.read", true),
        ("fs.*", "fs.read", true),
        ("fs.*", "fs.read.more", true),
        ("fs.*", "fs", false),
        ("fs.*", "fsck.run", false),
        ("fs.*", "my.fs.read", false),
        ("fs.read", "fs.read", true),
        ("fs.read", "fs.read.more", false),
        ("fs.read", "fs.reader", false),
    ] {
        assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
    }
    for bad in ["", ".*", "fs*", "*.read", "fs.**", "**", "fs.*.read", "Fs.*", "fs.", "fs. *"] {
        assert!(bad.parse::<NamePattern>().is_err(), "{bad}");
    }
}

#[test]
fn version_requirements() {
    let fits = |requirement: &str, version: &str| {
        let parsed: VersionRequirement = requirement.parse().unwrap();
        assert_eq!(parsed.to_string(), requirement);
        parsed.fits(&version.parse().unwrap())
    };
    for (requirement, version, expected) in [
        ("1.2.0", "1.2.0", true),
        ("1.2.0", "1.2.1", false),
        (">=1.2.0", "1.10.0", true),
        (">=1.2.0", "1.2.0-rc.1", false),
        (">=1.2.0-rc.1", "1.2.0", true),
        ("1.*", "1.0.0", true),
        ("1.*", "1.99.3", true),
        ("1.*", "10.0.0", false),
        ("1.*", "1.1.0-rc.1", false),
        ("1.2.*", "1.2.7", true),
        ("1.2.*", "1.20.0", false),
    ] {
        assert_eq!(fits(requirement, version), expected, "{requirement} {version}");
    }
    for bad in ["", "*", ".*", "1", "1.2", ">1.0.0", ">=1", "1.2.3.*", "01.*", "x.*", "1.*.*", "-1.*", "99999999999.*"]
    {
        assert!(bad.parse::<VersionRequirement>().is_err(), "{bad}");
    }
}

#[test]
fn what_is_not_understood_is_refused_with_its_place() {
    let head = "schema = \"glovebox/profiles/v1\"\n";
    let agent = "[[agent]]\nname = \"a\"\ndiscover = []\nexecute = []\n";
    for (text, named) in [
        (String::new(), "missing field `schema`"),
        (head.replace("v1", "v2"), "glovebox/profiles/v2"),
        (format!("{head}[default]\ndiscover = []\nexecute = []\nexecutes = []\n"), "line 5"),
        (format!("{head}[default]\ndiscover = []\n"), "missing field `execute`"),
        (format!("{head}[[agents]]\n"), "unknown field `agents`"),
        (format!("{head}{}", agent.replace("discover = []", "discover = [\"fs.**\"]")), "`fs.**` is no pattern"),
        (format!("{head}{agent}version = \"^1\"\n"), "`^1` names no versions"),
        (format!("{head}{agent}rate = {{ calls = 0, per = \"1m\" }}\n"), "`agent[a].rate`: `calls`"),
        (format!("{head}{agent}rate = {{ calls = 1, per = \"1ms\" }}\n"), "`agent[a].rate`: `per`"),
        (format!("{head}{agent}{agent}"), "`agent[a]`: an earlier entry is for all versions of it"),
        (format!("{head}{agent}version = \"1.*\"\n{agent}version = \"1.*\"\n"), "an earlier entry is for 1.* of it"),
        (format!("{head}{}", agent.repeat(300)), "at most 256 entries"),
    ] {
        let error = Profiles::from_toml(&text).unwrap_err().to_string();
        assert!(error.contains(named), "`{named}` is not in: {error}");
    }
}

#[test]
fn what_a_manifest_says_of_its_place_in_the_registry_is_checked() {
    let golden = include_str!("../golden/tool.registry.v1.toml");
    let manifest = Manifest::from_toml(golden).unwrap();
    let rate = Rate { calls: 10, per: Span(std::time::Duration::from_secs(60)) };
    assert_eq!((manifest.owner.unwrap().as_str(), manifest.rate), ("post-office", Some(rate)));
    assert_eq!(manifest.requires.len(), 2);
    for (from, to, named) in [
        ("calls = 10", "calls = 0", "`rate`: `calls` is a number from 1 to 1000"),
        ("calls = 10", "calls = 1001", "`rate`: `calls`"),
        ("per = \"1m\"", "per = \"999ms\"", "`rate`: `per` lies between 1s and 31d"),
        ("per = \"1m\"", "per = \"32d\"", "`rate`: `per`"),
        ("\"text.count@1.0.0\"", "\"mail.send@2.0.0\"", "a capability can't require itself"),
        ("\"text.count@1.0.0\"", "\"text.count\"", "lacks a version"),
        ("\"text.count@1.0.0\"", &["\"a.b@1.0.0\""; 20].join(","), "at most 16 capabilities, this names 21"),
        ("post-office", "post office", "is not a name"),
    ] {
        let error = Manifest::from_toml(&golden.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(named), "`{named}` is not in: {error}");
    }
}
