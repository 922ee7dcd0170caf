//! What choosing costs with 10,000 tools: `cargo bench -p windlass-select`. Numbers are printed,
//! never asserted.

use std::{
    fs,
    hint::black_box,
    io::{Write, stdout},
    sync::LazyLock,
    time::Instant,
};

use serde_json::json;
use windlass_select::{Card, ChoiceContext, Index, ToolRequest, choose};

const VERBS: [&str; 20] = [
    "get",
    "list",
    "create",
    "delete",
    "update",
    "search",
    "send",
    "convert",
    "calculate",
    "translate",
    "schedule",
    "cancel",
    "compare",
    "analyze",
    "export",
    "import",
    "validate",
    "summarize",
    "track",
    "predict",
];
const THINGS: [&str; 25] = [
    "weather",
    "invoice",
    "customer",
    "flight",
    "hotel",
    "recipe",
    "stock",
    "playlist",
    "ticket",
    "document",
    "calendar",
    "message",
    "image",
    "vehicle",
    "patient",
    "course",
    "contract",
    "server",
    "database",
    "repository",
    "package",
    "sensor",
    "route",
    "payment",
    "report",
];
const PLACES: [&str; 20] = [
    "city",
    "account",
    "team",
    "project",
    "region",
    "device",
    "market",
    "store",
    "school",
    "hospital",
    "airport",
    "factory",
    "library",
    "garden",
    "office",
    "network",
    "warehouse",
    "studio",
    "bank",
    "farm",
];

const ROUNDS: u32 = 200;

const REQUESTS: [&str; 8] = [
    "What is the weather like in the city of Oslo tomorrow?",
    "Send the invoice to the customer and track the payment, please.",
    "I would like to compare the prices of hotels near the airport for next weekend, and to see how long the route takes.",
    "delete_ticket_project",
    "把这个季度的库存报告导出来，发给仓库的负责人",
    "明天上海的天气怎么样？",
    "convert \"report.docx\" into a summary of at most 200 words",
    "Which sensors of the factory have failed since Monday, and what would a repair cost?",
];

fn main() {
    let cards = cards();
    let before = resident_kb();
    let mut index = Index::new();
    let build = (0..5).map(|_| {
        let start = on_cpu();
        index = Index::new();
        for card in &cards {
            index.add(card);
        }
        on_cpu() - start
    });
    print(&format!(
        "{:32} {:>9.1} ms",
        "10,000 tools indexed, at best",
        build.fold(f64::MAX, f64::min) * 1e3
    ));
    print(&format!("{:32} {:>9.1} MB", "memory of the index", (resident_kb() - before) / 1e3));
    requests("a request, searched", |request| drop(black_box(index.search(request, 20))));
    requests("a request, chosen", |request| {
        drop(black_box(choose(&index, request, ChoiceContext::default(), 10)))
    });
    let bytes = index.to_bytes();
    print(&format!("{:32} {:>9.1} MB", "saved", u32::try_from(bytes.len()).map_or(0.0, f64::from) / 1e6));
    let start = on_cpu();
    drop(black_box(Index::from_bytes(&bytes)));
    print(&format!("{:32} {:>9.1} ms", "read back", (on_cpu() - start) * 1e3));
}

fn cards() -> Vec<Card> {
    let tool = |verb: &str, thing: &str, place: &str| Card {
        name: format!("{verb}_{thing}_{place}"),
        description: format!(
            "{verb} the {thing} of a {place}; takes the identifier of the {place} and gives back what is known of the {thing}, \
             with the time of its last change."
        ),
        server: format!("{thing}-server"),
        parameters: json!({"type": "object", "required": ["id"], "properties": {
            "id": {"type": "string", "description": format!("Identifier of the {place}.")},
            "limit": {"type": "integer", "description": "How many at most."},
            "format": {"type": "string", "enum": ["short", "full"], "description": "How much to tell."},
        }}),
        ..Card::default()
    };
    let all = VERBS.iter().flat_map(|verb| THINGS.iter().map(move |thing| (verb, thing)));
    all.flat_map(|(verb, thing)| PLACES.iter().map(move |place| tool(verb, thing, place))).collect()
}

/// Many rounds of all requests, each read anew: time on a core, and the slowest request at its
/// best.
fn requests(name: &str, mut work: impl FnMut(&ToolRequest)) {
    let mut best = [f64::MAX; REQUESTS.len()];
    let start = on_cpu();
    for _ in 0..ROUNDS {
        for (text, best) in REQUESTS.iter().zip(&mut best) {
            let start = Instant::now();
            work(&ToolRequest::new(text));
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    let mean = (on_cpu() - start) / f64::from(ROUNDS) / 8.0 * 1e6;
    let slowest = best.iter().copied().fold(0.0, f64::max) * 1e6;
    print(&format!(
        "{name:32} {mean:>9.1} µs mean; the slowest of {} {slowest:.1} µs at best",
        REQUESTS.len()
    ));
}

/// Seconds this thread has had a core, because others may want it too; where the kernel does not
/// say, seconds at all.
fn on_cpu() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = told.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |count| count / 1e9)
}

fn resident_kb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0.0)
}

fn print(line: &str) {
    // Nobody to tell if the terminal is gone.
    let _gone = writeln!(stdout(), "{line}");
}
