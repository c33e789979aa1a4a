//! Folders that containers see and change, as far as it takes Python, a process of
//! its own or a kill to try it.

use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::containers::{MINIMAL, PYTHON, are_here};
use crate::support::{House, Ran};

#[test]
fn what_was_written_through_memory_comes_out() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    house.may_write();
    let file = house.file("workspace/data", "hello world");
    let script =
        "import mmap; f = open('data', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[:5]; m[0:5] = b'HELLO'; m.flush()";
    house.run(&["exec", "--image", PYTHON, "--workspace", ".", "--", "python3", "-c", script]).ok();
    assert_eq!(fs_err::read_to_string(file).unwrap(), "HELLO world");
}

/// Also to one that comes while the tool runs.
#[test]
fn a_shown_folder_has_no_socket_that_could_be_spoken_to() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    let script = "import socket, time\n\
         pair = socket.socketpair()\npair[0].send(b'own'); print(pair[1].recv(3).decode(), flush=True); time.sleep(2)\n\
         try:\n  s = socket.socket(socket.AF_UNIX); s.connect('socket'); s.send(b'x'); print('reached')\n\
         except PermissionError: print('refused')";
    let mut command = house.command();
    command.args(["exec", "--image", PYTHON, "--workspace", ".:read", "--", "python3", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert_eq!(line, "own\n");
    let _listener = UnixListener::bind(house.workspace().join("socket")).unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut said, &mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(rest, "refused\n");
}

#[test]
fn more_folders_than_descriptors_are_all_there() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    house.may_write();
    for number in 0..400 {
        house.file(&format!("workspace/{number}/f"), "x");
    }
    let exec =
        format!("{} exec --image {MINIMAL} --workspace . -- sh -c 'ls */f | wc -l'", env!("CARGO_BIN_EXE_glovebox"));
    let limited = format!("ulimit -n 256 && exec {exec}");
    let mut command = house.command_of("sh");
    let ran = Ran::of(command.args(["-c", &limited])).ok();
    assert_eq!(ran.stdout.trim(), "400");
}

/// Nobody has to call `gc` for it.
#[test]
fn what_a_killed_run_left_goes_with_the_next() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    let runs = || fs_err::read_dir(house.state().join("run")).map_or(0, Iterator::count);
    let mut killed = house.command();
    killed.args(["exec", "--image", MINIMAL, "--", "sleep", "1000"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut killed = killed.spawn().unwrap();
    let began = Instant::now();
    while runs() == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "it did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    // It has its lock by now.
    std::thread::sleep(Duration::from_millis(500));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(runs(), 1);
    house.run(&["exec", "--image", MINIMAL, "--", "true"]).ok();
    assert_eq!(runs(), 0);
}

#[test]
fn what_is_no_name_of_an_image_asks_the_engine_for_nothing() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    for name in ["../version?", "../containers/json", "a b", "a//b", "a?b", "a#b", "a%2e"] {
        house.refuses(&["exec", "--image", name, "--", "true"], 2, "image-unknown", &["no name of an image"]);
    }
}
