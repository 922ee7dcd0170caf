//! The scenes that are played for the pictures.

use std::time::Duration;

use serde_json::{Value, json};

/// Longer than the time in which a new question takes no keys.
pub(super) const READING_TIME: Duration = Duration::from_millis(700);

/// The project of all scenes.
pub(super) const FILES: [(&str, &str); 2] = [
    ("src/price.py", "def parse(text):\n    return int(text)\n"),
    (
        "test_price.py",
        "import sys\nsys.path.insert(0, \"src\")\nfrom price import parse\n\nassert parse(\" 7 \") == 7\n\
         assert parse(\"1,200\") == 1200\nprint(\"2 passed\")\n",
    ),
];

/// One picture.
pub(super) struct PictureScene {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) size: (u16, u16),
    pub(super) options: &'static [&'static str],
    pub(super) script: Value,
    pub(super) steps: &'static [SceneStep],
}

/// Something that happens in a scene.
pub(super) enum SceneStep {
    /// Waits until the screen shows a text.
    Wait(&'static str),
    Type(&'static str),
    /// Waits until a question takes keys.
    Read,
}

/// The words of the model in a scene.
struct ModelWords {
    begin: &'static str,
    finding: &'static str,
    end: &'static str,
    push: &'static str,
}

const ENGLISH: ModelWords = ModelWords {
    begin: "I run the tests first.",
    finding: "`int` does not take the comma in `1,200`.",
    end: "Fixed: `parse` now accepts a **thousands separator**. Both tests pass.",
    push: "The tests pass, so I push the branch.",
};

const CHINESE: ModelWords = ModelWords {
    begin: "我先运行测试。",
    finding: "`int` 不接受 `1,200` 里的逗号。",
    end: "修好了：`parse` 现在接受**千位分隔符**，两个测试都通过。",
    push: "测试通过，我把分支推送出去。",
};

/// Returns all scenes.
pub(super) fn all() -> [PictureScene; 4] {
    const WRITES: &[&str] = &["-s", "workspace-write"];
    let fix = |name, title, words: &ModelWords, steps| PictureScene {
        name,
        title,
        size: (44, 92),
        options: WRITES,
        script: fix_script(words),
        steps,
    };
    let question = |name, title, words: &ModelWords, steps| PictureScene {
        name,
        title,
        size: (44, 92),
        options: WRITES,
        script: question_script(words),
        steps,
    };
    [
        fix(
            "session",
            "windlass",
            &ENGLISH,
            &[
                SceneStep::Wait("Ask, or /"),
                SceneStep::Type("why does test_price.py fail? please fix it\r"),
                SceneStep::Wait("Both tests pass"),
                SceneStep::Wait("Ask, or /"),
                SceneStep::Read,
            ],
        ),
        fix(
            "session.zh",
            "windlass",
            &CHINESE,
            &[
                SceneStep::Wait("Ask, or /"),
                SceneStep::Type("test_price.py 为什么失败？请修好\r"),
                SceneStep::Wait("两个测试都通过"),
                SceneStep::Wait("Ask, or /"),
                SceneStep::Read,
            ],
        ),
        question(
            "approval",
            "windlass",
            &ENGLISH,
            &[
                SceneStep::Wait("Ask, or /"),
                SceneStep::Type("push the branch\r"),
                SceneStep::Wait("Allow it?"),
                SceneStep::Read,
            ],
        ),
        question(
            "approval.zh",
            "windlass",
            &CHINESE,
            &[
                SceneStep::Wait("Ask, or /"),
                SceneStep::Type("推送分支\r"),
                SceneStep::Wait("Allow it?"),
                SceneStep::Read,
            ],
        ),
    ]
}

fn fix_script(words: &ModelWords) -> Value {
    let test = json!({"name": "shell_command", "arguments": {"command": "python3 test_price.py"}});
    let patch = "*** Begin Patch\n*** Update File: src/price.py\n@@\n-    return int(text)\n\
                 +    return int(text.replace(\",\", \"\"))\n*** End Patch";
    json!({"turns": [
        {"text": words.begin, "calls": [
            test,
            {"name": "read_file", "arguments": {"path": "src/price.py"}}
        ]},
        {"text": words.finding, "calls": [{"name": "apply_patch", "input": patch}]},
        {"calls": [test]},
        {"text": words.end}
    ]})
}

fn question_script(words: &ModelWords) -> Value {
    let push = json!({"name": "shell_command", "arguments": {"command": "git push origin main --force"}});
    json!({"turns": [{"text": words.push, "calls": [push]}]})
}
