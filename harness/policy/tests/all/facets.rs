//! What is known of command lines.

use glovebox_policy::{Facet, WRAPPERS, WRAPPERS_WITH};
use proptest::prelude::*;

fn words(facet: &Facet) -> (Option<&str>, Vec<&str>) {
    (facet.program.as_deref(), facet.args.iter().map(String::as_str).collect())
}

#[test]
fn one_simple_command_is_taken_apart_as_a_shell_does() {
    for (line, program, args) in [
        ("ls", "ls", &[][..]),
        ("  ls\t-l  'a b' ", "ls", &["-l", "a b"]),
        (r#"grep "a \"b\" \n" c\ d"#, "grep", &[r#"a "b" \n"#, "c d"]),
        ("cat a'b'\"c\"", "cat", &["abc"]),
        ("printf '%s;$(x)`y`&&|<>'", "printf", &["%s;$(x)`y`&&|<>"]),
        ("echo ''", "echo", &[""]),
        ("echo a#b k=v", "echo", &["a#b", "k=v"]),
        (r"/bin/l\s x", "ls", &["x"]),
    ] {
        let facet = Facet::of_line(line);
        assert!(facet.simple, "{line}");
        assert_eq!(words(&facet), (Some(program), args.to_vec()), "{line}");
    }
}

#[test]
fn more_than_one_simple_command_is_said_to_be_more() {
    for line in [
        "",
        "  ",
        "''",
        "ls;",
        "ls & ",
        "ls|x",
        "ls && x",
        "ls || x",
        "ls\nx",
        "ls\rx",
        "ls $(x)",
        "ls `x`",
        "ls $x",
        "ls ${x}",
        "ls \"$x\"",
        "ls \"`x`\"",
        "ls > f",
        "ls < f",
        "ls 2>&1",
        "ls *",
        "ls ?",
        "ls [a]",
        "ls {a,b}",
        "ls ~",
        "x=1 ls",
        "x=1",
        "ls 'a",
        "ls \"a",
        "ls a\\",
        "ls a\\\nb",
        "(ls)",
        "{ ls; }",
        "! ls",
        "if ls",
        "for",
        "while x",
        "# ls",
        "ls # x",
        "ls <(x)",
        "ls =x",
        "a/",
        "ls \0",
        "ls '\u{1b}'",
        "time ls",
        "function f",
        "[[ a ]]",
    ] {
        let facet = Facet::of_line(line);
        assert!(!facet.simple, "{line:?}");
        assert_eq!((facet.program, facet.path), (None, None), "{line:?}");
    }
}

#[test]
fn flags_have_one_form_wherever_they_stand() {
    let flags = |line: &str| Facet::of_line(line).flags.into_iter().collect::<Vec<_>>().join(" ");
    for line in ["rm -r -f x", "rm -f -r x", "rm -rf x", "rm x -fr", "rm -f x -r", "rm -- x -rf"] {
        assert_eq!(flags(line), "-f -r", "{line}");
    }
    assert_eq!(flags("x --depth=1 --force"), "--depth --force");
    assert!(Facet::of_line("x --depth=1").args.contains("1"));
    assert_eq!(flags("x - --"), "");
}

#[test]
fn program_and_path_are_both_known() {
    for (path, program) in [("rm", "rm"), ("/bin/rm", "rm"), ("./rm", "rm"), ("../../x/rm", "rm")] {
        let facet = Facet::of_words(&[path, "a"]);
        assert_eq!((facet.program.as_deref(), facet.path.as_deref()), (Some(program), Some(path)));
        assert_eq!(facet, Facet::of_line(&format!("{path} a")));
    }
    assert!(!Facet::of_words(&[]).simple && !Facet::of_words(&["", "rm"]).simple);
}

/// A list of words is what it is: no shell looks at it.
#[test]
fn words_are_not_read_as_a_shell_would() {
    let facet = Facet::of_words(&["echo", "a; rm -rf /", "$(x)"]);
    assert!(facet.simple && !facet.wrapper);
    assert_eq!(facet.may_run.into_iter().collect::<Vec<_>>(), ["echo"]);
}

#[test]
fn every_wrapper_shows_what_it_may_run() {
    for wrapper in WRAPPERS {
        for facet in [
            Facet::of_words(&[wrapper, "-c", "cd x && /bin/rm -rf y"]),
            Facet::of_words(&[wrapper, "--", "/bin/rm", "y"]),
            Facet::of_words(&[&format!("/usr/bin/{wrapper}"), "rm"]),
            Facet::of_line(&format!("{wrapper} X=1 'r'm y")),
        ] {
            assert!(facet.wrapper || !facet.simple, "{wrapper}: {facet:?}");
            assert!(facet.may_run.contains("rm"), "{wrapper}: {facet:?}");
        }
    }
    for (program, flags) in WRAPPERS_WITH {
        assert!(!Facet::of_words(&[program, "x"]).wrapper, "{program}");
        for flag in *flags {
            let facet = Facet::of_words(&[program, "x", flag, "/bin/rm"]);
            assert!(facet.wrapper && facet.may_run.contains("rm"), "{program} {flag}");
        }
    }
    for (line, wrapper) in [
        ("python3.11 x.py", true),
        ("tar --to-comm=rm -xf a", true),
        ("tar -xvIrm a", true),
        ("tar -xf a", false),
        ("find . -name x", false),
    ] {
        assert_eq!(Facet::of_line(line).wrapper, wrapper, "{line}");
    }
}

#[test]
fn what_is_not_simple_shows_what_it_may_run() {
    for line in [
        "ls; rm x",
        "ls && rm x",
        "ls|rm",
        "$(rm x)",
        "`rm`",
        "{ rm; }",
        "x=$(/bin/rm y)",
        "ls\nrm x",
        "(rm)",
        "\"rm\" $x",
        "r''m x > y",
        "r\\m x &",
        "a=rm; $a",
        "{rm,x}",
        "<(rm x)",
        "! rm",
    ] {
        assert!(Facet::of_line(line).may_run.contains("rm"), "{line:?}");
    }
}

#[test]
fn the_lists_are_sorted_and_say_nothing_twice() {
    assert!(WRAPPERS.is_sorted_by(|a, b| a < b));
    assert!(WRAPPERS_WITH.is_sorted_by(|a, b| a.0 < b.0));
    assert!(WRAPPERS_WITH.iter().all(|(name, flags)| !flags.is_empty() && !WRAPPERS.contains(name)));
}

proptest! {
    /// Whoever quotes gets back what they quoted, and nothing else comes of it.
    #[test]
    fn quoting_makes_any_words_one_simple_command(words in prop::collection::vec("[^\\p{Cc}]{0,12}", 0..6)) {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        let facet = Facet::of_line(&format!("tool {}", quoted.join(" ")));
        let expected: Vec<&str> = std::iter::once("tool").chain(words.iter().map(String::as_str)).collect();
        prop_assert_eq!(facet, Facet::of_words(&expected));
    }

    /// No text makes it panic, and what is simple has a program.
    #[test]
    fn any_text_has_a_facet(text in "\\PC*|[\\s;&|<>(){}$`'\"\\\\a-z=#!~*-]*") {
        let facet = Facet::of_line(&text);
        prop_assert_eq!(facet.simple, facet.program.is_some());
        prop_assert_eq!(facet.program.is_some(), facet.path.is_some());
        prop_assert!(!facet.wrapper || facet.simple);
        if let Some(program) = &facet.program {
            prop_assert!(facet.may_run.contains(program));
        }
    }
}
