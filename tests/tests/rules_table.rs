//! The tables of `docs/rules.md` say what the sources say: every rule has a row, every decision is
//! the home of a rule, every home exists, and so does everything that is said to hold it.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod tree;

use std::collections::{BTreeMap, BTreeSet};

use tree::{files, text};

/// Rules by letter, and how many there are of each.
const IDS: [(char, u32); 8] =
    [('S', 22), ('V', 5), ('K', 7), ('D', 6), ('L', 9), ('U', 5), ('C', 5), ('H', 1)];
/// Numbers that no rule has.
const UNUSED: [&str; 2] = ["S11", "S12"];
/// Where planted bugs are declared.
const PLANTS: [&str; 5] = [
    "crates/sim/src/search/inversions.rs",
    "crates/sim/src/search/controls.rs",
    "crates/sim/src/swarm/plants.rs",
    "crates/proto/tests/planted.rs",
    "crates/driver/src/planted.rs",
];

/// What is compared.
#[derive(Clone)]
struct Repository {
    rules: String,
    bugs: String,
    assumptions: String,
    /// Other documents, which may name methods.
    others: String,
    /// Every Rust file of the crates and of the tests, by path.
    sources: BTreeMap<String, String>,
    traces: String,
    /// The names of all tests.
    tests: BTreeSet<String>,
}

/// A row of the tables.
struct Row<'a> {
    ids: Vec<&'a str>,
    homes: Vec<&'a str>,
    held_by: Vec<&'a str>,
}

impl Repository {
    fn read() -> Self {
        let paths = ["crates", "tests/tests"].into_iter().flat_map(|top| files(top, ".rs"));
        let sources: BTreeMap<_, _> = paths.map(|path| (path.clone(), text(&path))).collect();
        let others = ["ARCHITECTURE.md", "docs/verification.md", "docs/replays.md"].map(text);
        let tests = sources.values().flat_map(|source| tests(source)).collect();
        Self {
            tests,
            rules: text("docs/rules.md"),
            bugs: text("docs/planted-bugs.md"),
            assumptions: text("docs/assumptions.md"),
            others: others.concat(),
            sources,
            traces: text("crates/core/tests/traces/table.txt"),
        }
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let (tables, _) = self.rules.split_once("## Where the rules").expect("the last section");
        let rows = tables.lines().filter(|line| line.starts_with("| ") && !line.contains("| id "));
        rows.map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [ids, _, homes, held_by] = cells[..] else { panic!("not four cells: {line}") };
            Row { ids: ids.split(", ").collect(), homes: quoted(homes), held_by: quoted(held_by) }
        })
        .collect()
    }

    /// The methods of `Rules`.
    fn methods(&self) -> BTreeSet<&str> {
        self.methods_of("crates/core/src/rules/mod.rs", "pub trait Rules")
    }

    /// What the driver decides.
    fn conduct(&self) -> BTreeSet<&str> {
        self.methods_of("crates/driver/src/conduct.rs", "pub(crate) trait Conduct")
    }

    fn methods_of(&self, path: &str, head: &str) -> BTreeSet<&str> {
        let (_, body) = self.sources[path].split_once(head).expect("the trait");
        let (body, _) = body.split_once("\n}\n").expect("its end");
        let lines = body.lines().filter_map(|line| line.strip_prefix("    fn "));
        lines.filter_map(|line| line.split(['(', '<']).next()).collect()
    }

    /// Planted bugs by name, with the method that each overrides (or none).
    fn inversions(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for line in self.bugs.lines().filter(|line| line.starts_with("| ")) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            if cells[0] != "bug" {
                let methods = cells[1].split(", ").map(|cell| cell.trim_matches('`'));
                let methods = methods.filter(|method| !method.is_empty());
                found.entry(cells[0]).or_default().extend(methods);
            }
        }
        for plant in self.sources["crates/core/tests/traces.rs"].split("plant!(").skip(1) {
            let Some((name, rest)) = plant.split_once(',') else { continue };
            let method = rest.split_once("fn ").and_then(|(_, rest)| rest.split('(').next());
            if name.contains("_found") {
                found.entry(name.trim()).or_default().extend(method);
            }
        }
        found
    }

    fn is_planted(&self, name: &str) -> bool {
        let forms = [" in \"", " breaks ", " {", ";"];
        let declared = |source: &String| {
            let lines = || source.lines().map(str::trim_start);
            let plant = |line: &str| {
                let rest = line.trim_start_matches("struct ").strip_prefix(name);
                rest.is_some_and(|rest| forms.iter().any(|form| rest.starts_with(form)))
            };
            lines().any(plant) || source.contains(&format!("name: \"{name}\""))
        };
        PLANTS.iter().any(|path| self.sources.get(*path).is_some_and(declared))
    }

    /// Whether a name of the column of homes is declared in the sources of a crate.
    fn is_declared(&self, home: &str) -> bool {
        let parts: Vec<&str> = home.split("::").collect();
        let Some((name, before)) = parts.split_last() else { return false };
        let owner = before.last().filter(|part| part.starts_with(char::is_uppercase));
        let modules = before.iter().filter(|part| part.starts_with(char::is_lowercase));
        let modules: Vec<&str> = modules.map(|part| part.trim_start_matches("candor_")).collect();
        let mentions = |path: &str, source: &str| path.contains(*name) || source.contains(*name);
        let has = |path: &str, source: &str| {
            let mut places = path.trim_end_matches(".rs").split('/');
            let inside = |module: &&str| path.split(['/', '.']).any(|part| part == *module);
            if !path.contains("/src/") || !mentions(path, source) || !modules.iter().all(inside) {
                return false;
            }
            match owner {
                Some(owner) => {
                    let about = ["enum ", "struct ", "trait ", "impl"].iter();
                    about.into_iter().any(|kind| declares(source, kind, owner))
                        && (word(source, &format!("fn {name}")) || word(source, name))
                }
                None if name.starts_with(char::is_uppercase) => {
                    ["enum ", "struct ", "trait ", "type "]
                        .iter()
                        .any(|kind| word(source, &format!("{kind}{name}")))
                }
                None => places.any(|part| part == *name) || word(source, &format!("fn {name}")),
            }
        };
        self.sources.iter().any(|(path, source)| has(path, source))
    }

    /// Whether the tables of decisions ask for a method.
    fn is_tabled(&self, method: &str) -> bool {
        let tables = |path: &str| path.starts_with("crates/core/tests/decisions/");
        let asks = format!("Honest::{method}");
        self.sources.iter().any(|(path, source)| tables(path) && word(source, &asks))
    }

    /// Everything that is wrong.
    fn errors(&self) -> Vec<String> {
        let (rows, methods, inversions) = (self.rows(), self.methods(), self.inversions());
        let mut errors = Vec::new();
        for (letter, last) in IDS {
            for id in (1..=last).map(|number| format!("{letter}{number}")) {
                let told = rows.iter().any(|row| row.ids.contains(&&*id));
                if told == UNUSED.contains(&&*id) {
                    errors.push(format!("{id}: its row"));
                }
            }
        }
        for id in 1..=5 {
            if !self.assumptions.contains(&format!("\n| A{id} |")) {
                errors.push(format!("A{id}: its row"));
            }
        }
        for row in &rows {
            self.check_row(row, &methods, &inversions, &mut errors);
        }
        let at_home = |method: &&str| {
            rows.iter().any(|row| row.homes.iter().any(|home| *home == format!("Rules::{method}")))
        };
        for method in methods.iter().filter(|method| !at_home(method)) {
            errors.push(format!("Rules::{method}: home of no rule"));
        }
        for method in methods.iter().filter(|method| !self.is_tabled(method)) {
            errors.push(format!("Rules::{method}: in no table of decisions"));
        }
        for text in [&self.rules, &self.bugs, &self.others] {
            let named = text.split("Rules::").skip(1);
            let named = named.filter_map(|rest| rest.split(|c| !identifier(c)).next());
            let unknown = named.filter(|name| !methods.contains(name));
            errors.extend(unknown.map(|name| format!("Rules::{name}: named, and no method")));
        }
        let conduct = self.conduct();
        for (name, of) in &inversions {
            let planted = name.contains('_') || self.is_planted(name);
            let is_decision = |method: &&str| methods.contains(method) || conduct.contains(method);
            if !planted || !of.iter().all(is_decision) {
                errors.push(format!("{name}: no such planted bug"));
            }
        }
        errors
    }

    fn check_row(
        &self,
        row: &Row<'_>,
        methods: &BTreeSet<&str>,
        inversions: &BTreeMap<&str, BTreeSet<&str>>,
        errors: &mut Vec<String>,
    ) {
        let id = row.ids.join(", ");
        if row.held_by.is_empty() {
            errors.push(format!("{id}: held by nothing"));
        }
        for home in &row.homes {
            let decision = home.strip_prefix("Rules::").filter(|method| methods.contains(method));
            let decision = decision.or_else(|| home.strip_prefix("Conduct::"));
            match decision {
                Some(method) => {
                    let inverts =
                        |name: &&str| inversions.get(name).is_some_and(|of| of.contains(method));
                    if !row.held_by.iter().any(inverts) {
                        errors.push(format!("{id}: nothing inverts {method}"));
                    }
                }
                None if home.starts_with("Rules::") || self.is_declared(home) => {}
                None => errors.push(format!("{id}: there is no {home}")),
            }
        }
        for name in &row.held_by {
            let trace = name.strip_prefix('T').and_then(|rest| rest.parse::<u32>().ok());
            let exists = match trace {
                Some(number) => self.traces.contains(&format!("\nT{number} ")),
                None => inversions.contains_key(name) || self.tests.contains(*name),
            };
            if !exists {
                errors.push(format!("{id}: {name} holds nothing"));
            }
        }
    }
}

/// The tests of a file.
fn tests(source: &str) -> Vec<String> {
    let marked = source.split("#[test]\n").skip(1).filter_map(|rest| rest.split_once("fn "));
    let named = marked.filter_map(|(_, rest)| rest.split('(').next());
    named.map(str::to_owned).collect()
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(source: &str, name: &str) -> bool {
    source.match_indices(name).any(|(at, _)| {
        !source[..at].ends_with(identifier) && !source[at + name.len()..].starts_with(identifier)
    })
}

/// Whether a file declares the type, or has methods of it.
fn declares(source: &str, kind: &str, name: &str) -> bool {
    let heads = source.lines().filter(|line| line.contains(kind) && !line.contains("//"));
    heads.into_iter().any(|line| word(line, name))
}

#[test]
fn the_tables_say_what_the_sources_say() {
    let repository = Repository::read();
    let errors = repository.errors();
    assert!(errors.is_empty(), "docs/rules.md:\n{}", errors.join("\n"));
    assert!(repository.inversions().len() >= 80, "{}", repository.inversions().len());
}

/// A change to what is compared.
type Edit = fn(&mut Repository);

#[test]
fn an_error_in_the_tables_is_found() {
    let truth = Repository::read();
    let edits: [(&str, Edit); 8] = [
        ("S5: its row", |it| it.rules = it.rules.replace("| S5 |", "| S55 |")),
        ("A3: its row", |it| it.assumptions = it.assumptions.replace("| A3 |", "| A9 |")),
        ("Rules::klass", |it| it.rules = it.rules.replace("Rules::class", "Rules::klass")),
        ("Rules::class: home", |it| it.rules = it.rules.replace("`Rules::class`, ", "")),
        ("no Lane::vacuum", |it| it.rules = it.rules.replace("Lane::vacate", "Lane::vacuum")),
        ("NoGates", |it| it.rules = it.rules.replace("`NoGate`", "`NoGates`")),
        ("inverts span_has_room", |it| {
            it.rules = it.rules.replace("`WideSpan`, `a_span_without_bound_is_found`", "`T14`");
        }),
        ("Phantom: no such", |it| it.bugs.push_str("| Phantom | `class` | x | y | z | 1 |\n")),
    ];
    for (error, edit) in edits {
        let mut wrong = truth.clone();
        edit(&mut wrong);
        let errors = wrong.errors();
        assert!(errors.iter().any(|told| told.contains(error)), "{error} is not in {errors:?}");
    }
    let mut wrong = truth.clone();
    let source = wrong.sources.get_mut("crates/core/src/rules/mod.rs").expect("the rules");
    *source = source.replacen("    fn class(", "    fn hidden() {}\n    fn class(", 1);
    assert!(wrong.errors().contains(&"Rules::hidden: home of no rule".to_owned()));
    assert!(wrong.errors().contains(&"Rules::hidden: in no table of decisions".to_owned()));
}
