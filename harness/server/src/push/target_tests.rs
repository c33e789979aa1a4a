use std::str::FromStr as _;
use std::sync::Mutex;

use super::*;

fn reach(private: bool, plain: bool) -> Reach {
    Reach { private, plain }
}

/// Addresses of every kind, with what they are.
const ALL: &[(&str, Class)] = &[
    ("93.184.216.34", Class::Public),
    ("2606:2800:220:1:248:1893:25c8:1946", Class::Public),
    ("127.0.0.1", Class::Loopback),
    ("127.8.9.1", Class::Loopback),
    ("::1", Class::Loopback),
    ("10.0.0.1", Class::Private),
    ("172.16.0.1", Class::Private),
    ("172.31.255.255", Class::Private),
    ("172.32.0.1", Class::Public),
    ("192.168.1.1", Class::Private),
    ("fd12::1", Class::Private),
    ("fec0::1", Class::Private),
    ("100.64.0.1", Class::Shared),
    ("100.127.255.255", Class::Shared),
    ("100.128.0.1", Class::Public),
    ("169.254.1.1", Class::LinkLocal),
    ("fe80::1", Class::LinkLocal),
    ("169.254.169.254", Class::Metadata),
    ("fd00:ec2::254", Class::Metadata),
    ("100.100.100.200", Class::Metadata),
    ("168.63.129.16", Class::Metadata),
    ("192.0.0.192", Class::Metadata),
    ("224.0.0.1", Class::Multicast),
    ("239.1.2.3", Class::Multicast),
    ("ff02::1", Class::Multicast),
    ("0.0.0.0", Class::Reserved),
    ("0.1.2.3", Class::Reserved),
    ("192.0.2.1", Class::Reserved),
    ("198.18.0.1", Class::Reserved),
    ("203.0.113.9", Class::Reserved),
    ("240.0.0.1", Class::Reserved),
    ("255.255.255.255", Class::Reserved),
    ("::", Class::Reserved),
    ("2001:db8::1", Class::Reserved),
    ("2001::1", Class::Reserved),
    ("2002:7f00:1::", Class::Reserved),
    ("4000::1", Class::Reserved),
    // In the clothes of another.
    ("::ffff:127.0.0.1", Class::Loopback),
    ("::ffff:169.254.169.254", Class::Metadata),
    ("::ffff:93.184.216.34", Class::Public),
    ("::10.0.0.1", Class::Private),
    ("64:ff9b::10.0.0.1", Class::Private),
    ("64:ff9b::127.0.0.1", Class::Loopback),
    ("64:ff9b::93.184.216.34", Class::Public),
    ("64:ff9b:1::93.184.216.34", Class::Reserved),
];

#[test]
fn every_address_is_of_one_kind_and_only_public_ones_are_called() {
    for (text, is) in ALL {
        let address: IpAddr = text.parse().unwrap();
        assert_eq!(class(address), *is, "{text}");
        assert_eq!(reach(false, false).check(address).is_ok(), *is == Class::Public, "{text}");
        // Who allows addresses of their own allows neither metadata nor the rest.
        let own = matches!(is, Class::Loopback | Class::Private | Class::Shared);
        assert_eq!(reach(true, false).check(address).is_ok(), own || *is == Class::Public, "{text}");
        // Without TLS nothing leaves this host.
        assert_eq!(reach(true, true).check(address).is_ok(), *is == Class::Loopback, "{text}");
    }
}

#[test]
fn an_address_of_a_webhook_is_https_and_no_private_one_however_it_is_written() {
    for good in ["https://hooks.example/a?b=c", "https://93.184.216.34:8443/"] {
        parse(good, false).unwrap();
    }
    for bad in [
        "http://hooks.example/",
        "ftp://hooks.example/",
        "file:///etc/passwd",
        "hooks.example",
        "https://user:word@hooks.example/",
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://127.1/",
        "https://0177.0.0.1/",
        "https://127.0.0.1./",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://169.254.169.254/latest/meta-data/",
        "https://１２７.0.0.1/",
    ] {
        assert_eq!(parse(bad, false).map(drop).unwrap_err().code, Code::WebhookTarget, "{bad}");
    }
    for own in ["http://127.0.0.1:8080/", "http://[::1]/", "https://10.1.2.3/", "http://localhost/"] {
        parse(own, true).unwrap();
    }
    for never in ["http://10.1.2.3/", "http://93.184.216.34/", "https://169.254.169.254/", "https://0.0.0.0/"] {
        assert_eq!(parse(never, true).map(drop).unwrap_err().code, Code::WebhookTarget, "{never}");
    }
}

/// Each time it is asked, a name has the next of these addresses.
fn answers(all: &'static [&'static [&'static str]]) -> Lookup {
    let asked = Arc::new(Mutex::new(0));
    Arc::new(move |_| {
        let mut asked = asked.lock().unwrap();
        let addresses = all[(*asked).min(all.len() - 1)].iter().map(|text| text.parse().unwrap()).collect();
        *asked += 1;
        Box::pin(async move { Ok(addresses) })
    })
}

async fn resolved(checked: &Checked) -> Result<Vec<IpAddr>, String> {
    let name = Name::from_str("hooks.example").unwrap();
    let found = checked.resolve(name).await.map_err(|error| error.to_string())?;
    Ok(found.map(|address| address.ip()).collect())
}

#[tokio::test]
async fn a_name_that_is_public_first_and_private_then_gains_nothing() {
    let lookup = answers(&[&["93.184.216.34"], &["127.0.0.1"]]);
    let checked = Checked { reach: reach(false, false), lookup };
    // What is connected to is what was checked.
    assert_eq!(resolved(&checked).await.unwrap(), ["93.184.216.34".parse::<IpAddr>().unwrap()]);
    assert_eq!(resolved(&checked).await.unwrap_err(), "127.0.0.1 is this host itself");
}

#[tokio::test]
async fn one_private_address_among_public_ones_is_one_too_many() {
    let lookup = answers(&[&["93.184.216.34", "10.0.0.1"]]);
    let checked = Checked { reach: reach(false, false), lookup };
    assert_eq!(resolved(&checked).await.unwrap_err(), "10.0.0.1 is in a private network");
}
