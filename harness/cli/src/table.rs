//! Columns of text.

use std::io::{self, Write};

/// Rows whose cells line up. The last column is as long as it is.
#[derive(Default)]
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.0.push(cells.iter().map(|&cell| cell.to_owned()).collect());
    }

    /// Adds a row of so many cells as there are.
    pub(crate) fn cells(&mut self, cells: Vec<String>) {
        self.0.push(cells);
    }

    /// Writes all rows, each after `indent`.
    ///
    /// # Errors
    /// The stream's, such as a closed pipe.
    pub(crate) fn write(&self, out: &mut impl Write, indent: &str) -> io::Result<()> {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column: usize| self.0.iter().filter_map(|row| row.get(column)).map(|cell| chars(cell)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.0 {
            let mut line = String::from(indent);
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width.saturating_sub(chars(cell)) + 2));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_line_up() {
        let mut table = Table::default();
        table.row(["a", "naïve", "x"]);
        table.row(["long", "b", ""]);
        let mut out = Vec::new();
        table.write(&mut out, "  ").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "  a     naïve  x\n  long  b\n");
    }
}
