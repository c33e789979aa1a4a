//! Functions with every WIT type, for the tests of calling them with JSON.

use bindings::exports::example::typed::{data, shapes};
use bindings::{Guest, Names};
use shapes::{Colour, Everything, Point, Shape};

/// The bindings that are generated from the interface definition.
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "typed" });
}

struct Typed;

impl shapes::Guest for Typed {
    fn echo(all: Everything) -> Everything {
        all
    }

    fn add(a: u32, b: u32) -> Result<u32, Colour> {
        a.checked_add(b).ok_or(Colour::Blue)
    }

    fn centre(shape: Shape, scale: Option<f64>) -> Option<Point> {
        let scale = scale.unwrap_or(1.0);
        match shape {
            Shape::Circle(_) => Some(Point { x: 0.0, y: 0.0, label: Some("circle".into()) }),
            Shape::Polygon(points) => {
                let first = points.into_iter().next()?;
                Some(Point { x: first.x * scale, y: first.y * scale, label: first.label })
            }
            Shape::Nothing => None,
        }
    }
}

impl data::Guest for Typed {
    fn reverse(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.reverse();
        bytes
    }

    fn tail(bytes: Vec<u8>, skip: u32) -> Vec<u8> {
        bytes.into_iter().skip(skip as usize).collect()
    }

    fn encode(text: String) -> Result<Vec<u8>, String> {
        if text.is_empty() { Err("there is no text".into()) } else { Ok(text.into_bytes()) }
    }

    fn decode(bytes: Vec<u8>, name: String) -> Result<String, String> {
        String::from_utf8(bytes).map_err(|_| format!("{name} is no text"))
    }

    fn many(count: u32) -> Vec<u8> {
        vec![7; count as usize]
    }
}

impl Guest for Typed {
    fn greet(name: String) -> String {
        format!("Hello, {name}!")
    }

    fn whole(names: Names) -> String {
        match names.last {
            Some(last) => format!("{} {last}", names.first),
            None => names.first,
        }
    }

    fn nothing() {}

    fn crash() -> String {
        panic!("told to")
    }
}

bindings::export!(Typed with_types_in bindings);
