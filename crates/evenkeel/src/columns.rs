//! Rows of text in columns, for terminals.

/// The rows, one a line, with `gap` between the columns: the first column to the
/// left, figures to the right.
pub(crate) fn columns(rows: &[impl AsRef<[String]>], gap: &str) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (column, cell) in row.as_ref().iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(column) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.as_ref().iter().zip(&widths).enumerate();
        let cells: Vec<_> = cells
            .map(|(column, (cell, width))| match column {
                0 => format!("{cell:width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        text.push_str(cells.join(gap).trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::columns;

    #[test]
    fn names_stand_left_and_figures_right() {
        let row =
            |cells: &[&str]| -> Vec<String> { cells.iter().map(ToString::to_string).collect() };
        let rows = [
            row(&["ZONE", "N", "M"]),
            row(&["ä", "100", ""]),
            row(&["b"]),
        ];
        assert_eq!(columns(&rows, "  "), "ZONE    N  M\nä     100\nb\n");
        assert_eq!(columns(&[] as &[Vec<String>], " "), "");
    }
}
